#!/usr/bin/env python3
"""The products of tests/bench/products.cpp in xtape and PyTorch, in turn. Prints the best speeds of all rounds in per
cent of the peak, and their ratio: for A B, A Bᵀ and Aᵀ B.

usage: products.py [--program build/tests/products] [--threads 1] [--rounds 3] [--only NAME,…]
"""
import argparse
import math
import os
import subprocess
from collections import defaultdict

import torch

from best_of import best_of

NAMES = "gpt-char,gpt-baby,gpt2-124m,transformer,gru-attention,lstm-attention,narrow,square"
SECONDS = 0.2


def torch_speeds(m, n, k):
    """GFLOP/s of the products, whose operands are transposed as in the program."""
    out = torch.empty(m, n)
    speeds = []
    for a, b in ((torch.rand(m, k), torch.rand(k, n)), (torch.rand(m, k), torch.rand(n, k).t()),
                 (torch.rand(k, m).t(), torch.rand(k, n))):
        speeds.append(2e-6 * m * n * k / best_of(lambda: torch.mm(a, b, out=out), SECONDS))
    return speeds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/tests/products")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=NAMES)
    words = parser.parse_args()
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(variable, None)
    torch.set_num_threads(words.threads)
    peak, ours, theirs = defaultdict(float), defaultdict(lambda: [0.0] * 3), defaultdict(lambda: [0.0] * 3)
    for _ in range(words.rounds):
        for name in words.only.split(","):
            command = [words.program, "--only", name, "--threads", str(words.threads)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for line in printed.splitlines()[1:]:
                m, n, k, _, *numbers = (float(word) for word in line.replace("%", "").split()[1:])
                size = int(m), int(n), int(k)
                peak[size] = max(peak[size], numbers[0])
                ours[size] = [max(pair) for pair in zip(ours[size], numbers[1::2])]
                theirs[size] = [max(pair) for pair in zip(theirs[size], torch_speeds(*size))]
    for size, speeds in ours.items():
        columns = [f"{100 * a / peak[size]:3.0f} {100 * b / peak[size]:3.0f} {a / b:5.2f}"
                   for a, b in zip(speeds, theirs[size])]
        print(f"{size[0]:5} {size[1]:6} {size[2]:5}   " + "   ".join(columns))
    ratios = [a / b for size in ours for a, b in zip(ours[size], theirs[size])]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"mean ratio {mean:.2f}; {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} ratios are at least 1")


main()
