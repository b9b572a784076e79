#!/usr/bin/env python3
"""Networks that PyTorch exported, in turn: playing them in xtape (tests/bench/exported.cpp) and ONNX Runtime, and gradients by
all weights in xtape and PyTorch. Prints the least milliseconds of all rounds. Needs torch, torchvision, transformers, onnx
and onnxruntime.

usage: exported.py [--program build/tests/exported] [--threads 2] [--rounds 3] [--seconds 3] [--folder /tmp/xtape-onnx] [NAME…]
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path


def networks():
    import torch
    import torchvision
    import transformers

    ids = torch.arange(4 * 128).reshape(4, 128) * 7919 % 97

    def first(model):
        class First(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x):
                return self.model(x)[0]

        return First()

    def bert():
        config = transformers.BertConfig(vocab_size=1000, hidden_size=768, num_hidden_layers=4, num_attention_heads=12,
                                         intermediate_size=3072)
        return first(transformers.BertModel(config)), ids

    def gpt2():
        config = transformers.GPT2Config(vocab_size=1000, n_embd=768, n_layer=4, n_head=12, use_cache=False)
        return first(transformers.GPT2LMHeadModel(config)), ids

    def vit():
        config = transformers.ViTConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536)
        return first(transformers.ViTModel(config)), torch.randn(4, 3, 224, 224)

    def resnet18():
        return torchvision.models.resnet18(), torch.randn(1, 3, 224, 224)

    return {"bert": bert, "gpt2": gpt2, "vit": vit, "resnet18": resnet18}


def peer(name, threads, seconds, path, what):
    """One figure of a peer, in a process of its own."""
    import torch

    from best_of import best_of

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x = networks()[name]()
    model.eval()
    if what == "export":
        torch.onnx.export(model, (x,), path, dynamo=True, external_data=False, input_names=["x"], output_names=["y"])
    elif what == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options)
        feeds = {"x": x.numpy()}
        print(best_of(lambda: session.run(None, feeds), seconds))
    else:
        weights = list(model.parameters())
        print(best_of(lambda: torch.autograd.grad(model(x).square().sum(), weights, allow_unused=True), seconds))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/tests/exported")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--folder", default="/tmp/xtape-onnx")
    parser.add_argument("--peer", nargs=2)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    if arguments.peer:
        name, what = arguments.peer
        return peer(name, arguments.threads, arguments.seconds, f"{arguments.folder}/{name}.onnx", what)

    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS")}

    def run(command):
        done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return [float(word) for word in done.stdout.split()[-3:]] if done.stdout.strip() else []

    shared = ["--threads", str(arguments.threads), "--seconds", str(arguments.seconds)]
    print("network     opening   xtape  onnxruntime  ratio   gradients: xtape  PyTorch  ratio")
    for name in arguments.names or ["bert", "gpt2", "vit", "resnet18"]:
        path = f"{arguments.folder}/{name}.onnx"
        this = [sys.executable, str(Path(__file__).resolve()), *shared, "--folder", arguments.folder, "--peer", name]
        if not os.path.exists(path):
            run([*this, "export"])
        best = [1e9] * 5
        for _ in range(arguments.rounds):
            found = run([arguments.program, path, *shared]) + run([*this, "onnxruntime"])[-1:] + run([*this, "torch"])[-1:]
            best = [min(a, b) for a, b in zip(best, found)]
        opening, forward, backward, theirs, torchs = best
        print(f"{name:10} {opening:8.1f} {forward:8.2f} {theirs:11.2f} {forward / theirs:7.2f} {backward:17.2f} "
              f"{torchs:8.2f} {torchs / backward:6.2f}", flush=True)


main()
