#!/usr/bin/env python3
"""Makes decoders/: tiny random models that continue texts, as transformers saves them, and what it computes.

gpt_neox/ and phi/ have rope_parameters, sequential/ and flat/ are a GPT-NeoX without parallel residuals and a Phi in
the words of transformers 4; opt/ has norms first, late/ is as OPT 350M; mixtral/ and qwen3_moe/ have experts; mamba2/ has
two whole chunks and a part, two groups, and time steps at both limits; mistral/, gemma2/ and gemma3/ have windows of three
tokens, qwen2/ has biases of queries, keys and values, earlier/ is a Gemma 3 in the words of transformers 4. decoders.py NAME… makes these folders only.
expected.safetensors has in float64, computed by transformers on those files: tokens, targets, the logits of the last two
tokens, the loss, 20 tokens of greedy continuation, and for each gradient its sums with cos(i) and sin(i) as weights, under
the names of the definition.

decoders.py --check PROGRAM reads those folders with the program xtape, has it write them again (xtape export), and
compares what transformers finds there, and texts of xtape generate. Needs torch and transformers; the tests do not."""
import json, os, shutil, subprocess, sys, tempfile, zlib

import torch, torch.nn.functional as F
from safetensors.torch import load_file
from transformers import (AutoModelForCausalLM, AutoTokenizer, Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM,
                          Gemma3TextConfig, GPTNeoXConfig, GPTNeoXForCausalLM, Mamba2Config, Mamba2ForCausalLM,
                          MistralConfig, MistralForCausalLM, MixtralConfig, MixtralForCausalLM, OPTConfig, OPTForCausalLM,
                          PhiConfig, PhiForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

from golden import in_data, save
from in_double import in_double

V, T, B = 37, 9, 2
FOLDER = in_data("decoders")
# Parts of tensor names, and what the definition calls them.
NAMES = {
    "gpt_neox": {"gpt_neox.": "", "lm_head": "embed_out", "dense_h_to_4h": "up", "dense_4h_to_h": "down"},
    "phi": {"model.": "", "embed_tokens": "embed_in", "lm_head": "embed_out", "final_layernorm": "final_layer_norm",
            "self_attn": "attention", "fc1": "up", "fc2": "down"},
    "opt": {"model.decoder.": "", "self_attn_layer_norm": "attention_norm", "self_attn": "attention", "fc1": "mlp.up",
            "fc2": "mlp.down", "q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"},
    "mixtral": {"model.": "", "mlp.gate": "mlp.router", "experts.down_proj": "experts.down"},
    "mistral": {"model.": ""}, "gemma2": {"model.": ""}, "qwen2": {"model.": ""}, "gemma3_text": {"model.": ""}}
NAMES["qwen3_moe"] = NAMES["mixtral"]
NAMES["mamba2"] = {"backbone.": ""}


def models():
    sizes = dict(vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=40,
                 bos_token_id=0, eos_token_id=0)
    rotary = lambda part: {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": part}
    yield "gpt_neox", GPTNeoXForCausalLM(GPTNeoXConfig(
        **sizes, intermediate_size=20, initializer_range=0.7, rope_parameters=rotary(0.5)))
    yield "sequential", GPTNeoXForCausalLM(GPTNeoXConfig(
        **sizes, intermediate_size=20, initializer_range=0.7, use_parallel_residual=False, hidden_act="gelu_new",
        attention_bias=False, tie_word_embeddings=True, rope_parameters=rotary(0.25)))
    yield "phi", PhiForCausalLM(PhiConfig(
        **sizes, intermediate_size=20, initializer_range=0.7, num_key_value_heads=1, rope_parameters=rotary(0.5)))
    yield "flat", PhiForCausalLM(PhiConfig(
        **sizes, intermediate_size=20, initializer_range=0.7, qk_layernorm=True, rope_parameters=rotary(0.75)))
    yield "opt", OPTForCausalLM(OPTConfig(**sizes, dropout=0.0, ffn_dim=20, init_std=0.7, pad_token_id=1))
    yield "late", OPTForCausalLM(OPTConfig(
        **sizes, dropout=0.0, ffn_dim=20, init_std=0.7, word_embed_proj_dim=6, do_layer_norm_before=False,
        tie_word_embeddings=False, pad_token_id=1))
    windows = dict(sizes, intermediate_size=20, num_key_value_heads=1, head_dim=6, sliding_window=3, pad_token_id=1)
    plain = {"rope_type": "default", "rope_theta": 300.0}
    slower = {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0},
              "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
    yield "mistral", MistralForCausalLM(MistralConfig(**windows, initializer_range=0.7, rope_parameters=plain))
    yield "gemma2", Gemma2ForCausalLM(Gemma2Config(
        **windows, initializer_range=0.1, query_pre_attn_scalar=5, attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0, rope_parameters=plain))
    yield "gemma3", Gemma3ForCausalLM(Gemma3TextConfig(
        **windows, initializer_range=0.1, query_pre_attn_scalar=5, rope_parameters=slower,
        layer_types=["full_attention", "sliding_attention"]))
    yield "earlier", Gemma3ForCausalLM(Gemma3TextConfig(
        **windows, initializer_range=0.1, query_pre_attn_scalar=5, rope_parameters=slower, sliding_window_pattern=2,
        final_logit_softcapping=3.0))
    yield "qwen2", Qwen2ForCausalLM(Qwen2Config(
        **sizes, intermediate_size=20, initializer_range=0.4, num_key_value_heads=1, pad_token_id=1,
        rope_parameters=plain))
    yield "mixtral", MixtralForCausalLM(MixtralConfig(
        **sizes, intermediate_size=20, initializer_range=0.4, num_key_value_heads=1, head_dim=8, num_local_experts=5,
        num_experts_per_tok=2, rope_parameters={"rope_type": "default", "rope_theta": 300.0}))
    yield "qwen3_moe", Qwen3MoeForCausalLM(Qwen3MoeConfig(
        **sizes, moe_intermediate_size=12, initializer_range=0.7, num_key_value_heads=1, head_dim=6, num_experts=6,
        num_experts_per_tok=3, rope_parameters={"rope_type": "default", "rope_theta": 300.0}))
    del sizes["num_attention_heads"], sizes["max_position_embeddings"]
    yield "mamba2", Mamba2ForCausalLM(Mamba2Config(
        **sizes, initializer_range=0.7, num_heads=4, head_dim=8, state_size=6, n_groups=2, chunk_size=4, conv_kernel=3,
        time_step_limit=(0.02, 1.5)))


def folder(name):
    return os.path.join(FOLDER, name)


def rewrite_config(name, change):
    path = os.path.join(folder(name), "config.json")
    with open(path) as file:
        words = json.load(file)
    change(words)
    with open(path, "w") as file:
        json.dump(dict(sorted(words.items())), file, indent=2)


def in_old_words(words):
    """As transformers 4 wrote it."""
    rope = words.pop("rope_parameters")
    if "full_attention" in rope:
        words.pop("layer_types")
        words.update({"rope_theta": rope["full_attention"]["rope_theta"], "sliding_window_pattern": 2,
                      "rope_local_base_freq": rope["sliding_attention"]["rope_theta"],
                      "rope_scaling": {"rope_type": "linear", "factor": rope["full_attention"]["factor"]},
                      "torch_dtype": words.pop("dtype"), "transformers_version": "4.50.0"})
        return
    phi = words["model_type"] == "phi"
    words.update({"partial_rotary_factor" if phi else "rotary_pct": rope["partial_rotary_factor"],
                  "rope_theta" if phi else "rotary_emb_base": rope["rope_theta"], "torch_dtype": words.pop("dtype"),
                  "rope_scaling": None, "transformers_version": "4.43.0"})


def make_folders(names):
    for name, model in models():
        if name not in names:
            continue
        shutil.rmtree(folder(name), ignore_errors=True)
        torch.manual_seed(zlib.crc32(name.encode()))
        model.apply(model._init_weights)
        with torch.no_grad():  # norms and biases not at their start, so that every term shows
            for value in model.parameters():
                if value.dim() == 1:
                    value.add_(0.2 * torch.randn_like(value))
        model.save_pretrained(folder(name))
    for name in {"sequential", "flat", "earlier"} & names:
        rewrite_config(name, in_old_words)


def opened(name):
    """The folder's model, that computes in float64 inside in_double()."""
    model = AutoModelForCausalLM.from_pretrained(folder(name), dtype=torch.float32, attn_implementation="eager").eval()
    model.config._experts_implementation = "eager"  # the others have no float64
    with in_double():
        model = model.double()
        if hasattr(model.base_model, "rotary_emb"):
            model.base_model.rotary_emb = type(model.base_model.rotary_emb)(model.config)
    return model


def our_name(model, name):
    for theirs, ours in NAMES[model.config.model_type].items():
        name = name.replace(theirs, ours)
    return name.replace("final_layer_norm", "mlp_norm") if "layers." in name else name


def sums(gradient):
    i = torch.arange(gradient.numel(), dtype=torch.float64)
    return torch.stack([gradient.flatten() @ torch.cos(i), gradient.flatten() @ torch.sin(i)])


def gradients(model):
    for key, value in model.named_parameters():
        if key.endswith("experts.gate_up_proj"):  # [expert, gate and up, width]
            for part, gradient in zip(("gate", "up"), value.grad.chunk(2, 1)):
                yield key.replace("gate_up_proj", part), gradient
        else:
            yield key, value.grad


def expect(name, expected):
    model = opened(name)
    tokens, targets = torch.randint(2, V, (B, T)), torch.randint(V, (B, T))
    targets[1, -3:] = -1
    with in_double():
        compute = lambda tokens: model(tokens, attention_mask=torch.ones_like(tokens)).logits
        logits = compute(tokens)
        loss = F.cross_entropy(logits.view(-1, V), targets.view(-1), ignore_index=-1)
        loss.backward()
        text = tokens[:1, :6]
        for _ in range(20):
            text = torch.cat([text, compute(text)[:, -1:].argmax(-1)], 1)
    plain = AutoModelForCausalLM.from_pretrained(folder(name)).eval()
    assert (plain(tokens, attention_mask=torch.ones_like(tokens)).logits - logits).abs().max() < 1e-4
    found = {"tokens": tokens, "targets": targets, "logits": logits[:, -2:].detach(), "loss": loss.detach(),
             "continuation": text[0, 6:]}
    found.update({"grad." + our_name(model, key): sums(gradient) for key, gradient in gradients(model)})
    expected.update({name + "." + key: value for key, value in found.items()})


def main():
    names = set(sys.argv[1:]) or {name for name, _ in models()}
    make_folders(names)
    file = os.path.join(FOLDER, "expected.safetensors")
    expected = {key: value.clone() for key, value in load_file(file).items()} if os.path.exists(file) else {}
    for name in sorted(names):
        expect(name, expected)
    save(file, expected)
    print({key: value.tolist() for key, value in expected.items() if key.endswith(("loss", "continuation"))})


def check_export(program, name):
    with tempfile.TemporaryDirectory() as made:
        written = os.path.join(made, "written")
        subprocess.run([program, "export", folder(name), written], check=True, stdout=subprocess.DEVNULL)
        load = lambda where: AutoModelForCausalLM.from_pretrained(where, output_loading_info=True, dtype=torch.float32,
                                                                  attn_implementation="eager")
        (model, info), (original, _) = load(written), load(folder(name))
        tokens = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(3))
        equal = torch.equal(model.eval()(tokens).logits, original.eval()(tokens).logits)
        wrong = {kind: list(names) for kind, names in info.items() if names}
        print(f"{name}: loading: {wrong or 'nothing missing or surplus'}, logits identical: {equal}")
        return equal and not wrong


def check_text(program, name, model):
    """A larger model with the tokenizer of llama/nested: greedy text."""
    with tempfile.TemporaryDirectory() as made:
        model.resize_token_embeddings(282)
        with torch.no_grad():
            for value in model.parameters():
                value.copy_(torch.randn_like(value) * 0.6)
        model.eval().save_pretrained(made)
        for file in "tokenizer.json", "tokenizer_config.json":
            shutil.copy(in_data("llama/nested/" + file), made)
        tokenizer = AutoTokenizer.from_pretrained(made)
        prompt = tokenizer("a stitch in", return_tensors="pt").input_ids
        tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=12,
                                use_cache=False,  # steps of Mamba2 disregard time_step_limit
                                eos_token_id=281, pad_token_id=0)[0]
        expected = tokenizer.decode(tokens, skip_special_tokens=True)
        made_text = subprocess.run([program, "generate", made, "--prompt", "a stitch in", "--tokens", "12",
                                    "--temperature", "0"], check=True, stdout=subprocess.PIPE).stdout
        found = made_text.decode(errors="replace")
        print(f"{name}: text {found!r}, equal: {found.strip() == expected.strip()}")
        return found.strip() == expected.strip()


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    torch.manual_seed(5)
    right = [check_export(program, name) for name, _ in models()] + [check_text(program, *each) for each in models()]
    if not all(right):
        sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
