#!/usr/bin/env python3
"""The training step of tests/bench/resnet.cpp in xtape and PyTorch, in turn, each in processes of its own. Prints the
least milliseconds of all rounds and the peak of the resident memory. PyTorch's before the network exists is printed too.

usage: resnet.py [--program build/tests/resnet] [--threads 1] [--rounds 3] [--seconds 3]
"""
import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path


def theirs(threads, seconds):
    import torch
    from torch import nn
    from torch.nn import functional as F

    from best_of import best_of

    torch.set_num_threads(threads)

    class Residual(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.added = after - before

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            if self.added:
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added // 2, self.added // 2))
            return F.relu(y + x)

    stages = [Residual(before if index == 0 else after, after, 2 if index == 0 and before != after else 1)
              for before, after in [(16, 16), (16, 32), (32, 64)] for index in range(3)]
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *stages,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    assert sum(each.numel() for each in model.parameters()) == 269722
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    images, labels = torch.randn(32, 3, 32, 32), torch.arange(32) % 10
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    best = best_of(step, seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{best} {peak} {before}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/tests/resnet")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--theirs", action="store_true")
    words = parser.parse_args()
    if words.theirs:
        return theirs(words.threads, words.seconds)
    found = {"xtape": [], "PyTorch": []}
    models = Path(__file__).parents[2] / "models"
    environment = os.environ | {"OMP_NUM_THREADS": str(words.threads), "XTAPE_MODELS": str(models)}
    same = ["--threads", str(words.threads), "--seconds", str(words.seconds)]
    for _ in range(words.rounds):
        for name, command in [("xtape", [words.program]), ("PyTorch", [sys.executable, __file__, "--theirs"])]:
            printed = subprocess.run(command + same, capture_output=True, text=True, check=True, env=environment).stdout
            found[name].append([float(each) for each in printed.split() if each != "resnet"])
    ours, torchs = (min(each[0] for each in found[name]) for name in ("xtape", "PyTorch"))
    memory = [min(each[1] for each in found[name]) for name in ("xtape", "PyTorch")]
    print(f"{words.threads} threads: xtape {ours:.1f} ms, PyTorch {torchs:.1f} ms, {torchs / ours:.2f} times as fast; "
          f"memory {memory[0]:.0f} MiB, {memory[1]:.0f} MiB "
          f"(of which {found['PyTorch'][0][2]:.0f} before the first step)")


if __name__ == "__main__":
    main()
