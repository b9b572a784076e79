#!/usr/bin/env python3
"""Counts what a training step costs in Python and in C++: instructions, because times of these small steps are noise.

usage: languages.py BUILD_DIRECTORY

Prints Markdown: a row for each size of the model. Builds tests/languages and libxtape-c first; needs NumPy and valgrind."""
import os, re, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"16 tokens, width 16": (16, 16), "64 tokens, width 16": (64, 16)}


def train(steps, tokens, width):
    """The training of languages.cpp."""
    import numpy as np
    import xtape
    sizes = dict(vocab_size=27, n_positions=tokens, n_embd=width, n_layer=2, n_head=4, dropout_rate=0)
    model = xtape.Model("gpt2", hyper=sizes, seed=1)
    tape = xtape.Tape(mode="train")
    source, target = model.inputs(tape, "loss", b=4, t=tokens)
    total, count = model.record(tape, "loss", source, target)
    step = xtape.Step(total / count, model.weights, optimizer={"kind": "adamw"}, schedule=0.01, clip=1)
    codes = np.arange(4 * tokens).reshape(4, tokens)
    loss = 0
    for i in range(steps):
        loss = step({source: (codes + i) % 27, target: (codes + i + 1) % 27})
    print(f"{loss:.6f}")


def main(build):
    build = Path(build).resolve()
    subprocess.run(["meson", "compile", "-C", build, "languages", "xtape-c"], check=True, stdout=sys.stderr)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "packaging/python"), "LD_LIBRARY_PATH": str(build / "src/c"), "XTAPE_MODELS": str(ROOT / "models"),
        "XTAPE_ISA": "avx2", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}

    def counted(command, steps, size):
        """The instructions of all, and the last loss."""
        words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command, *map(str, (steps, *size))]
        run = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
        return int(re.search(r"refs: *([\d,]+)", run.stderr)[1].replace(",", "")), run.stdout

    print("| model | instructions of a step in C++, millions | more in Python, millions | |\n|---|---|---|---|")
    for name, size in SIZES.items():
        costs = []
        for command in ([build / "tests/languages"], [sys.executable, __file__, "train"]):
            (less, _), (more, loss) = (counted(command, steps, size) for steps in (10, 210))
            costs.append(((more - less) / 200e6, loss))
        (here, loss), (there, same) = costs
        assert loss == same, f"{name}: the losses differ: {loss.strip()} and {same.strip()}"
        print(f"| {name} | {here:.1f} | {there - here:.2f} | {100 * (there - here) / here:.1f} % |", flush=True)


if sys.argv[1:2] == ["train"] and len(sys.argv) == 5:
    train(*map(int, sys.argv[2:]))
elif len(sys.argv) == 2:
    main(sys.argv[1])
else:
    sys.exit(__doc__)
