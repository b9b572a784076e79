"""What pages of `xtape report` are made of in tests and measurements. Each function makes an input in the current folder."""
import json, math, os, re, struct, subprocess
from pathlib import Path

attack = '"><img src=x onerror="attacked=1"></script><script>attacked=2</script>\u202e\u0007\' & {{data}}'


def sets(**settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


small = sets(n_layer=4, n_embd=8, n_head=2, vocab_size=11)
deep = sets(n_layer=350, n_embd=8, n_head=2, vocab_size=11)


def plays(xtape, *words, code=0):
    """Runs a command, which ends with this exit code, and returns what it prints, or its errors if the code is not 0."""
    done = subprocess.run([xtape, *words], capture_output=True, text=True)
    if done.returncode != code:
        raise RuntimeError(f"xtape {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stderr if code else done.stdout


def flat_tape(xtape, folder):
    """A tape of 22,000 nodes that belong to no module."""
    plays(xtape, "show", "gpt2", *deep, "--tape", "loss", "--with", "b=2,t=8", "--grad", "--mode", "train", "--save", folder)
    tape = Path(folder, "tape.json")
    tape.write_text(re.sub(r'"path":"[^"]*","where":"[^"]*","line":\d+,', "", tape.read_text()))


def hostile_tape(xtape, folder):
    """A saved tape whose names attack a page, and which names files that are no definitions as the places of its lines."""
    plays(xtape, "show", "gpt2", *small, "--tape", "loss", "--with", "b=2,t=4", "--grad", "--save", folder)
    tape = json.loads(Path(folder, "tape.json").read_text())
    Path("secret.txt").write_text("a secret\n")
    Path("recipe.json").write_text('{"xtape": 2, "data": "a secret"}')
    Path("foreign.json").write_text('{"blocks": "a secret"}')
    Path("list.json").write_text('["xtape", "blocks", "a secret"]')
    Path("large.json").write_text('{"xtape": 2, "blocks": "a secret' + " " * (1 << 20) + '"}')
    os.mkfifo("pipe")
    here = os.getcwd()
    files = [f"{here}/{name}" for name in ("secret.txt", "recipe.json", "foreign.json", "list.json", "large.json", "pipe", "none", "")]
    files += ["/dev/zero", "/proc/kcore", "/proc/self/mem", "/etc/passwd", here]
    renamed, sites = 0, [node["site"] for node in tape["tape"]["nodes"]]
    for i, site in enumerate(sites):
        if site.get("path", "").startswith("h.1"):
            site["path"] = site["path"].replace("h.1", "h.1." + attack)
            renamed += 1
        if i % 3 == 0:  # places of a program, and definitions
            site.pop("where", None)
            site["caller"] = {"file": files[i // 3 % len(files)], "line": 1}
        elif i % 3 == 1:
            site["where"] = files[i // 3 % len(files)] + ", block 'secrets'"
    tape["tape"]["nodes"][0]["name"] = attack
    assert renamed > 0 and len(sites) > 6 * len(files), "not every file is named in both ways"
    Path(folder, "tape.json").write_text(json.dumps(tape))


def long_run(folder, name="long"):
    """A run of 100,000 updates."""
    os.mkdir(folder)
    Path(folder, "recipe.json").write_text(json.dumps({"xtape": 2, "name": name}))
    with open(f"{folder}/metrics.jsonl", "w") as lines:
        for step in range(1, 100_001):
            lines.write(f'{{"step":{step},"loss":{3 / (1 + step / 9000) + step % 17 / 90},"learning_rate":{1e-3 * step},"gradient_norm":{1 + step % 5 / 9}}}\n')


def failed_run(xtape, folder):
    """A run whose loss becomes NaN."""
    trained(xtape, folder, *sets(steps=4, bits="same", **{"schedule.rate": "1e18"}), code=1)


def trained(xtape, folder, *words, code=0):
    """A run of a tiny GPT-2 on a text."""
    Path("text.txt").write_text("the rain in spain\n" * 40)
    recipe = sets(**{"data.text": "text.txt", "data.block_size": 8, "hyper.n_layer": 1, "hyper.n_embd": 8, "hyper.n_head": 2,
                     "batch.size": 2, "schedule.warmup": 1})
    plays(xtape, "train", "shakespeare_char", *recipe, "--out", folder, *words, code=code)


def onnx_resnet(xtape, file):
    """A residual network of 14 layers as an ONNX file."""
    plays(xtape, "show", "resnet", *sets(blocks=2, filters=4, height=8, width=8), "--tape", "logits", "--with", "b=2", "--save", "resnet_tape")
    plays(xtape, "export", "resnet_tape", file)


def changed_gpt2(source, file):
    """GPT-2 with other activations, narrower layers, bounded scores, and no dropout after the MLP."""
    text = Path(source, "models/gpt2.json").read_text()
    for old, new in {'"gelu_tanh"': '"relu"', '"4 * n_embd"': '"2 * n_embd"', "query, key) / scale": "query, key) / scale\", \"scores = 5 * tanh(scores / 5)",
                     "dropout(c_proj(act(c_fc(x))), resid_dropout_rate)": "c_proj(act(c_fc(x)))"}.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    Path(file).write_text(text)


def measured_run(folder):
    """A run of 400 updates with evaluations, statistics of modules, watched values and samples, whose numbers are formulas."""
    os.mkdir(folder)
    Path(folder, "recipe.json").write_text(json.dumps({"xtape": 2, "name": "measured", "schedule": {"rate": 0.1}}))
    modules = ["wte", *(f"h.{layer}.{part}" for layer in range(3) for part in ("attn", "mlp"))]
    with open(f"{folder}/metrics.jsonl", "w") as lines:
        for step in range(1, 401):
            if step % 20 == 1:
                gradients = {module: {"largest": 3 + i, "gradient_mean": 10.0 ** (-i * step / 200)} for i, module in enumerate(modules)}
                lines.write(json.dumps({"step": step, "statistics": gradients}) + "\n")
                lines.write(json.dumps({"step": step, "watched": {"h.1.attn.scores": {"least": -step / 99, "largest": step / 50, "not_finite": 0}}}) + "\n")
            lines.write(json.dumps({"step": step, "loss": 3 / (1 + step / 90) + step % 17 / 90, "learning_rate": 1e-3 * min(step, 100),
                                    "gradient_norm": 1 + step % 5 / 9, "tokens": 64, "tokens_per_s": 900 + step % 7, "seconds": 0.07}) + "\n")
            if step % 100 == 0:
                lines.write(json.dumps({"step": step, "validation_loss": 3.1 / (1 + step / 90) + 0.2, "tokens": 512}) + "\n")
    Path(folder, "samples.jsonl").write_text("".join(json.dumps({"step": step, "prompt": "the ", "text": f"the rain in spain {step}"}) + "\n"
                                                     for step in (100, 200, 400)))


def write_arrays(file, arrays):
    """A safetensors file of float32 arrays, each given by its shape and elements."""
    header, data = {}, b""
    for name, (shape, elements) in arrays.items():
        part = struct.pack(f"<{len(elements)}f", *elements)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    Path(file).write_bytes(struct.pack("<Q", len(text)) + text + data)


def unet(source):
    """The arguments of a page about a U-Net that PyTorch exported, with an image to play."""
    write_arrays("image.safetensors", {"x0": ((2, 3, 8, 8), [math.sin(i * i / 99) for i in range(384)])})
    return [f"{source}/tests/golden/data/onnx/exports/unet_dynamo_18_eager.onnx", "--in", "image.safetensors"]
