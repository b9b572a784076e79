#!/usr/bin/env python3
"""Makes qwen3/: a tiny random Qwen3 as transformers saves it, and what it computes.

qwen3_expected.safetensors has, computed by transformers in float64 on that file: tokens, targets, logits of the last two places,
loss, some gradients (grad.NAME), and 20 tokens of greedy continuation of the first eight tokens.

qwen3.py --check PROGRAM has the program xtape write the folder again (xtape export) and compares what transformers finds
there. Needs torch and transformers; the tests do not."""
import os, shutil, subprocess, sys, tempfile

import torch, torch.nn.functional as F
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

from golden import in_data, save
from in_double import in_double

FOLDER = in_data("qwen3")
WORDS = 282  # as the tokenizer of llama/nested has
GRADIENTS = ["layers.0.self_attn.q_proj.weight", "layers.0.self_attn.q_norm.weight", "layers.1.self_attn.k_norm.weight",
             "layers.1.mlp.gate_proj.weight", "norm.weight"]


def opened(folder):
    return Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                            output_loading_info=True)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(11)
    config = Qwen3Config(vocab_size=WORDS, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=6, max_position_embeddings=64, initializer_range=0.3,
                         tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() == 1:  # norms not at their start, so that every factor shows
                value.add_(0.2 * torch.randn_like(value))
    model.save_pretrained(FOLDER)
    os.chmod(os.path.join(FOLDER, "model.safetensors"), 0o644)
    tokens, targets = torch.randint(WORDS, (2, 11)), torch.randint(WORDS, (2, 11))
    targets[1, -3:] = -1
    model = opened(FOLDER)[0].eval()
    with in_double():
        model = model.double()
        model.model.rotary_emb = Qwen3RotaryEmbedding(model.config)
        logits = model(tokens).logits
        loss = F.cross_entropy(logits.view(-1, WORDS), targets.view(-1), ignore_index=-1)
        loss.backward()
        text = tokens[:1, :8]
        for _ in range(20):
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], 1)
    weights = dict(model.model.named_parameters())
    save(FOLDER + "_expected.safetensors",
         {"tokens": tokens, "targets": targets, "logits": logits[:, -2:].detach(), "loss": loss.detach(),
          "continuation": text[0, 8:], **{"grad." + name: weights[name].grad for name in GRADIENTS}})


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    with tempfile.TemporaryDirectory() as made:
        written = os.path.join(made, "written")
        subprocess.run([program, "export", FOLDER, written], check=True)
        (model, info), (original, _) = opened(written), opened(FOLDER)
        tokens = torch.randint(WORDS, (2, 11), generator=torch.Generator().manual_seed(3))
        equal = torch.equal(model.eval()(tokens).logits, original.eval()(tokens).logits)
        wrong = {kind: list(names) for kind, names in info.items() if names}
        print(f"loading: {wrong or 'nothing missing or surplus'}, logits identical: {equal}")
        sys.exit(not equal or bool(wrong))


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
