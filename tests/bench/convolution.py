#!/usr/bin/env python3
"""The layers of tests/bench/convolution.cpp in xtape and PyTorch, in turn. Prints the least milliseconds of all rounds.

usage: convolution.py [--program build/tests/convolution] [--threads 1] [--rounds 3] [--seconds 0.5]
"""
import argparse
import subprocess

import torch
from torch.nn import functional as F

from best_of import best_of

LAYERS = {"16x32x32": ((32, 16, 32, 32), (16, 16, 3, 3)), "32x16x16": ((32, 32, 16, 16), (32, 32, 3, 3)),
          "64x8x8": ((32, 64, 8, 8), (64, 64, 3, 3)), "characters": ((16, 256, 256), (256, 256, 7))}


def torch_time(name, seconds):
    layer, kind = name.rsplit("_", 1)
    shape, weight_shape = LAYERS[layer]
    step = kind == "step"
    x = (torch.rand(shape) - 0.5).requires_grad_(step)
    weight = (0.2 * torch.rand(weight_shape) - 0.1).requires_grad_(step)
    convolve = F.conv1d if len(shape) == 3 else F.conv2d

    def run():
        y = convolve(x, weight, padding="same")
        if step:
            torch.autograd.grad(y.square().sum(), (x, weight))

    return best_of(run, seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/tests/convolution")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    for name in [f"{layer}_{kind}" for layer in LAYERS for kind in ("forward", "step")]:
        ours = theirs = 1e9
        for _ in range(words.rounds):
            command = [words.program, "--threads", str(words.threads), "--seconds", str(words.seconds), "--name", name]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            ours = min(ours, float(printed.split()[1]))
            theirs = min(theirs, torch_time(name, words.seconds))
        print(f"{name:20} xtape {ours:9.3f} ms, PyTorch {theirs:9.3f} ms, {theirs / ours:.2f} times as fast",
              flush=True)


main()
