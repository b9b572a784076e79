#!/usr/bin/env python3
"""Makes adapters/: low-rank adapters with random weights, as PEFT saves them, and what PEFT computes with them.

gpt2/ and every/ adapt hugging_face/tiny: the first c_attn only, the second all linear maps, by a regular expression, with
rslora. llama/, all/ and last/ adapt llama/nested: q_proj and v_proj, all linear maps, and those of the last layer. The others
adapt a folder of the model that they are named after.
expected.safetensors has for each tokens, PEFT's logits in float64 at the last two places, and the gradients of the sum of
squares of all logits for each A and B, as sums with cos(i) and sin(i) as weights.

adapters.py --check PROGRAM has the program xtape write adapters: these again, and new ones that it has trained. PEFT loads
them on the same base, and its logits are compared with those of the model that xtape exports with merged weights. Needs
torch, transformers and peft; the tests do not."""
import json, os, shutil, subprocess, sys, tempfile, warnings, zlib

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

from golden import in_data, save
from in_double import in_double

FOLDER = in_data("adapters")
BASES = {"gpt2": "hugging_face/tiny", "llama": "llama/nested", "mistral": "decoders/mistral", "qwen3": "qwen3",
         "gemma2": "decoders/gemma2", "gemma3_text": "decoders/gemma3", "opt": "decoders/opt"}
T, B = 7, 2
ADAPTERS = {
    "gpt2": ("gpt2", dict(r=3, lora_alpha=5, target_modules=["c_attn"], fan_in_fan_out=True)),
    "every": ("gpt2", dict(r=4, lora_alpha=2.5, target_modules=r".*\.(c_attn|c_proj|c_fc)", fan_in_fan_out=True,
                           use_rslora=True, lora_dropout=0.1)),
    "llama": ("llama", dict(r=2, lora_alpha=7, target_modules=["q_proj", "v_proj"])),
    "all": ("llama", dict(r=3, lora_alpha=3, target_modules="all-linear")),
    "last": ("llama", dict(r=2, lora_alpha=4, target_modules=["self_attn.o_proj", "down_proj"], layers_to_transform=[1])),
    "mistral": ("mistral", dict(r=2, lora_alpha=3, target_modules=["q_proj", "v_proj", "mlp.down_proj"])),
    "qwen3": ("qwen3", dict(r=2, lora_alpha=3, target_modules=["k_proj", "o_proj", "gate_proj"])),
    "gemma2": ("gemma2", dict(r=2, lora_alpha=1, target_modules=["q_proj", "down_proj"])),
    "gemma3_text": ("gemma3_text", dict(r=2, lora_alpha=1, target_modules=["o_proj", "up_proj"])),
    "opt": ("opt", dict(r=3, lora_alpha=2, target_modules=["q_proj", "out_proj", "fc1"])),
}
# Parts of the names of modules, and what the definitions have in their place.
OURS = {"base_model.model.": "", "transformer.": "", "model.": ""}
OF_OPT = {"decoder.": "", "self_attn.q_proj": "attention.query", "self_attn.out_proj": "attention.output", "fc1": "mlp.up"}


def base_of(name):
    return in_data(BASES[ADAPTERS[name][0]])


def base_model(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def make_folder(name):
    torch.manual_seed(zlib.crc32(name.encode()))
    model = get_peft_model(base_model(base_of(name)), LoraConfig(task_type="CAUSAL_LM", **ADAPTERS[name][1]))
    with torch.no_grad():
        for key, value in model.named_parameters():
            if ".lora_" in key:
                value.copy_(0.6 * torch.randn_like(value))
    folder = os.path.join(FOLDER, name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    os.chmod(os.path.join(folder, "adapter_model.safetensors"), 0o644)
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    config["base_model_name_or_path"] = os.path.relpath(base_of(name), folder)
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()  # they were in a set
    with open(path, "w") as file:
        json.dump(config, file, indent=2)


def opened(folder, base):
    """The adapted model, in float64 inside in_double()."""
    model = PeftModel.from_pretrained(base_model(base), folder, is_trainable=True).eval()
    with in_double():
        model = model.double()
        inner = model.base_model.model
        if hasattr(inner, "model") and hasattr(inner.model, "rotary_emb"):
            inner.model.rotary_emb = type(inner.model.rotary_emb)(inner.config)
    return model


def sums(gradient):
    i = torch.arange(gradient.numel(), dtype=torch.float64)
    return torch.stack([gradient.flatten() @ torch.cos(i), gradient.flatten() @ torch.sin(i)])


def main():
    expected = {}
    for name in ADAPTERS:
        make_folder(name)
        model = opened(os.path.join(FOLDER, name), base_of(name))
        vocabulary = model.base_model.model.config.vocab_size
        tokens = torch.randint(vocabulary, (B, T), generator=torch.Generator().manual_seed(len(name)))
        with in_double():
            logits = model(tokens).logits
            with model.disable_adapter():
                assert (model(tokens).logits - logits).abs().max() > 0.01
            logits.square().sum().backward()
        expected.update({name + ".tokens": tokens, name + ".logits": logits[:, -2:].detach()})
        for key, value in model.named_parameters():
            if ".lora_" in key:
                ours = key
                for theirs, own in (OURS | OF_OPT if name == "opt" else OURS).items():
                    ours = ours.replace(theirs, own)
                expected[f"{name}.grad.{ours.replace('.default.weight', '')}"] = sums(value.grad)
    save(os.path.join(FOLDER, "expected.safetensors"), expected)
    print({key: value.flatten()[:3].tolist() for key, value in expected.items() if key.endswith("logits")})


def run(program, *arguments):
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(name, adapter, base, merged):
    """Whether PEFT's logits with the adapter are those of the merged model, and nothing is missing or surplus."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of keys that are missing
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*")
        model = PeftModel.from_pretrained(base_model(base), adapter).eval()
    vocabulary = model.base_model.model.config.vocab_size
    tokens = torch.randint(vocabulary, (B, T), generator=torch.Generator().manual_seed(3))
    found = {key for key, _ in model.named_parameters() if ".lora_" in key}
    with torch.no_grad():
        logits, expected, plain = (each(tokens).logits for each in (model, base_model(merged), base_model(base)))
    off = ((logits - expected).abs().max() / expected.abs().max()).item()
    moved = (expected - plain).abs().max().item()
    print(f"{name}: {len(found)} adapters, logits differ by {off:.2g}, from those of the base by {moved:.2g}")
    return off < 1e-5 and moved > 0.01 and bool(found)


def check_again(program, name, made):
    """An adapter of PEFT, written by xtape."""
    adapter, merged = os.path.join(made, name), os.path.join(made, name + "-merged")
    run(program, "export", os.path.join(FOLDER, name), adapter, "--adapter")
    run(program, "export", os.path.join(FOLDER, name), merged)
    right = compare(name, adapter, base_of(name), merged)
    # xtape's reading of PEFT's own file, as PEFT reads it
    return compare(name + " of PEFT", os.path.join(FOLDER, name), base_of(name), merged) and right


def check_trained(program, kind, made):
    """An adapter that xtape trains, and one that goes on from this one."""
    text = os.path.join(made, "words.txt")
    with open(text, "w") as file:
        file.write("a rolling stone gathers no moss, and a stitch in time saves nine.\n" * 30)
    definition = in_data(f"../../../models/{kind}_lora.json")
    settings = ["data.text=" + text, "data.block_size=16", "steps=30", "schedule.rate=2e-2", "schedule.warmup=1",
                "batch.accumulate=1", "threads=1", "hyper.rank=4", "definition=" + definition]
    if kind != "llama":  # the folder has no tokenizer
        settings.append('tokenizer={"kind": "character"}')
    if kind == "opt":  # its definition has names of its own
        settings.append("hyper.targets=('query', 'value')")
    common = [word for setting in settings for word in ("--set", setting)]
    right, base = True, in_data(BASES[kind])
    for turn, start in (("first", []), ("second", ["--adapter", os.path.join(made, kind + "-first-adapter")])):
        where = os.path.join(made, f"{kind}-{turn}")
        run(program, "train", "gpt2_lora_finetune", "--from", base, *start, "--out", where, *common)
        run(program, "export", where, where + "-adapter", "--adapter")
        run(program, "export", where, where + "-merged")
        right = compare(f"{kind}, trained, {turn}", where + "-adapter", base, where + "-merged") and right
    return right


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    with tempfile.TemporaryDirectory() as made:
        right = [check_again(program, name, made) for name in ADAPTERS]
        right += [check_trained(program, kind, made) for kind in BASES]
    if not all(right):
        sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
