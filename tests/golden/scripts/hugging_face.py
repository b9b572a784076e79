#!/usr/bin/env python3
"""Makes hugging_face/: a tiny random GPT-2 as transformers saves it, and what it computes.

tiny/ is what save_pretrained writes; half/ and brain/ hold the same weights as float16 and bfloat16, shards/ in several
files, untied/ with an output table of its own. expected.safetensors has in float64, computed by transformers on those
files: logits, loss and every gradient (grad.NAME), ten losses of AdamW (lr 1e-2, betas 0.9/0.95, epsilon 1e-8, decay 0.1
on arrays of two axes, gradients clipped to norm 1), 64 tokens of greedy continuation, logits under other options of the
config (logits.NAME), and logits of the other folders.

hugging_face.py --check PROGRAM reads those folders with the program xtape, has it write them again (xtape export), and
compares what transformers and safetensors find there. Needs torch and transformers; the tests do not."""
import json, os, shutil, subprocess, sys, tempfile

import torch, torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from golden import in_data, save

V, T, B = 97, 12, 3
FOLDER = in_data("hugging_face")
OPTIONS = {"gelu": {"activation_function": "gelu"}, "relu": {"activation_function": "relu"},
           "unscaled": {"scale_attn_weights": False}, "by_layer": {"scale_attn_by_inverse_layer_idx": True}, "epsilon": {"layer_norm_epsilon": 0.1}}


def config(**changes):
    return GPT2Config(vocab_size=V, n_positions=80, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0,
                      initializer_range=0.2, **changes)


def randomised(model):
    # Norms and biases not at their start, so that every term shows, and places that matter, so that texts do not repeat.
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() == 1:
                value.add_(0.2 * torch.randn_like(value))
        model.transformer.wpe.weight.mul_(8)
    return model


def opened(folder, dtype=torch.float64, **changes):
    """Computing step by step as the formulas say."""
    return GPT2LMHeadModel.from_pretrained(folder, dtype=dtype, attn_implementation="eager", **changes).eval()


def folder(name):
    return os.path.join(FOLDER, name)


def rewrite(name, tensors):
    shutil.copytree(folder("tiny"), folder(name))
    save_file(tensors, os.path.join(folder(name), "model.safetensors"), metadata={"format": "pt"})


def make_folders():
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(11)
    model = randomised(GPT2LMHeadModel(config()))
    model.save_pretrained(folder("tiny"))
    model.save_pretrained(folder("shards"), max_shard_size="20KB")
    tensors = load_file(os.path.join(folder("tiny"), "model.safetensors"))
    rewrite("half", {name: value.half() for name, value in tensors.items()})
    rewrite("brain", {name: value.bfloat16() for name, value in tensors.items()})
    randomised(GPT2LMHeadModel(config(tie_word_embeddings=False, n_inner=24))).save_pretrained(folder("untied"))


def losses(model, tokens, targets):
    groups = [{"params": [v for v in model.parameters() if v.dim() >= 2], "weight_decay": 0.1},
              {"params": [v for v in model.parameters() if v.dim() < 2], "weight_decay": 0.0}]
    optimiser, found = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8), []
    for _ in range(10):
        optimiser.zero_grad()
        loss = loss_of(model, tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        optimiser.step()
        found.append(loss.detach())
    return torch.stack(found)


def loss_of(model, tokens, targets):
    return F.cross_entropy(model(tokens).logits.view(-1, V), targets.view(-1), ignore_index=-1)


def gradients(model, tokens, targets):
    model.zero_grad()
    loss = loss_of(model, tokens, targets)
    loss.backward()
    return loss.detach(), {name.removeprefix("transformer."): value.grad.clone()
                           for name, value in model.named_parameters()}


def main():
    make_folders()
    tokens, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    targets[1, -3:] = -1  # ignored
    tiny = opened(folder("tiny"))
    logits = lambda model: model(tokens).logits.detach()
    loss, by = gradients(tiny, tokens, targets)
    expected = {"tokens": tokens, "targets": targets, "logits": logits(tiny), "loss": loss}
    logits = lambda model: model(tokens[:1]).logits.detach()  # of the first row: enough, and small
    expected.update({"grad." + name: value for name, value in by.items()})
    expected["untied.loss"], by = gradients(opened(folder("untied")), tokens, targets)
    for name in "wte.weight", "lm_head.weight", "h.1.mlp.c_fc.weight":
        expected["untied.grad." + name] = by[name]
    for name in "half", "brain", "untied":
        expected[name + ".logits"] = logits(opened(folder(name)))
    for name, changes in OPTIONS.items():
        expected["logits." + name] = logits(opened(folder("tiny"), **changes))
    # What is to be done in float32 is done in float32 alone.
    expected["logits.upcast"] = logits(opened(folder("tiny"), torch.float32, reorder_and_upcast_attn=True))
    prompt = tokens[:1, :8]
    expected["continuation"] = tiny.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                                             max_new_tokens=64, eos_token_id=None, pad_token_id=0)[0, 8:]
    expected["losses"] = losses(opened(folder("tiny")), tokens, targets)
    save(in_data("hugging_face/expected.safetensors"), expected)
    print("losses", [round(v.item(), 6) for v in expected["losses"]])
    print("continuation", expected["continuation"].tolist())


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    tokens = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(3))
    for name in "tiny", "half", "brain", "shards", "untied":
        with tempfile.TemporaryDirectory() as made:
            written = os.path.join(made, "written")
            subprocess.run([program, "export", folder(name), written], check=True)
            with safe_open(os.path.join(written, "model.safetensors"), "pt") as file:
                count, metadata = len(file.keys()), file.metadata()
            model, info = GPT2LMHeadModel.from_pretrained(written, output_loading_info=True, dtype=torch.float32,
                                                          attn_implementation="eager")
            original = GPT2LMHeadModel.from_pretrained(folder(name), dtype=torch.float32, attn_implementation="eager")
            equal = torch.equal(model.eval()(tokens).logits, original.eval()(tokens).logits)
            wrong = {kind: list(names) for kind, names in info.items() if names}
            with open(os.path.join(written, "config.json")) as file:
                words = json.load(file)
            print(f"{name}: {count} tensors, {metadata}, {words['architectures']}, dtype {words['dtype']}, "
                  f"loading: {wrong or 'nothing missing or surplus'}, logits identical: {equal}")
            if not equal or wrong:
                sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
