#!/usr/bin/env python3
"""Runs the training benchmark on 1 rank with 2 threads, on 2 ranks with 1 thread and, if asked, by PyTorch's
DistributedDataParallel on 2 processes, in turn, and prints medians and ratios. Run it by a Python that has PyTorch for that.

usage: ranks.py [--rounds N] [--steps N] [--only NAME,NAME] [--torch]"""
import argparse, json, os, statistics, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = str(ROOT / "build/tests/ranks")
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")},
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def ran(command):
    lines = subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.splitlines()
    return json.loads([line for line in lines if line.startswith("{")][-1])


def main():
    a = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--steps", type=int, default=9)
    a.add_argument("--only", default="gpt-baby,gpt2-124m,transformer,gru-attention")
    a.add_argument("--torch", action="store_true")
    a = a.parse_args()
    for name in a.only.split(","):
        words = [name, "--steps", str(a.steps)]
        commands = {
            "1 rank, 2 threads": [BENCH, *words, "--threads", "2"],
            "2 ranks, 1 thread": ["mpirun", "-n", "2", BENCH, *words, "--threads", "1"],
            "2 ranks, allreduce": ["mpirun", "-n", "2", BENCH, *words, "--threads", "1", "--allreduce"],
        }
        if a.torch:
            commands["DDP on gloo"] = [sys.executable, str(ROOT / "tests/bench/torch_ddp.py"), *words]
        found = {key: [] for key in commands}
        for _ in range(a.rounds):
            for key, command in commands.items():
                found[key].append(ran(command))
        own = statistics.median(each["ms"] for each in found["2 ranks, 1 thread"])
        print(name)
        for key, runs in found.items():
            ms = statistics.median(each["ms"] for each in runs)
            peak = f", peak {max(each['peak_mb'] for each in runs)} MB a rank" if "peak_mb" in runs[0] else ""
            print(f"  {key:20} {ms:9.1f} ms  {own / ms:5.2f}{peak}", flush=True)


main()
