#!/usr/bin/env python3
"""Counts the instructions of a multiply-add in products on an emulated processor, where times would say nothing.

usage: counted.py BUILD_DIRECTORY EMULATOR [OPTION…]   e.g. build-aarch64 qemu-aarch64 -L build-aarch64/root -cpu max

Prints Markdown: a row for each kind of product, and a column for each number of rows of the left operand. The matrix has
512 columns and 256 terms. An instruction of NEON has 4 multiply-adds of float32, 2 of float64; of bytes, SDOT has 16 and
SMMLA 32. Builds tests/counted first, and the plugin that counts (counted.c)."""
import os, re, subprocess, sys, tempfile

COLUMNS, TERMS = 512, 256
ROWS = (1, 4, 8, 128)
PRODUCTS = {
    "float32, contiguous terms": ("float32", "mk,nk->mn"),
    "float32, contiguous columns": ("float32", "mk,kn->mn"),
    "float64, contiguous terms": ("float64", "mk,nk->mn"),
    "float64, contiguous columns": ("float64", "mk,kn->mn"),
    "bfloat16 weights": ("bfloat16", "mk,nk->mn"),
    "int8 weights": ("int8", "mk,nk->mn"),
    "Q8_0 weights": ("Q8_0", "mk,nk->mn"),
    "Q8_0 weights, precision int8": ("Q8_0", "mk,nk->mn", "int8"),
    "Q4_0 weights, precision int8": ("Q4_0", "mk,nk->mn", "int8"),
    "Q4_K weights, precision int8": ("Q4_K", "mk,nk->mn", "int8"),
    "Q5_K weights, precision int8": ("Q5_K", "mk,nk->mn", "int8"),
    "Q6_K weights, precision int8": ("Q6_K", "mk,nk->mn", "int8"),
    "Q8_0 weights across the sums, precision int8_training": ("Q8_0", "mk,kn->mn", "int8_training"),
}


def main(build, *emulator):
    subprocess.run(["ninja", "-C", build, "--quiet", "tests/counted"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        plugin = os.path.join(folder, "counted.so")
        source = os.path.join(os.path.dirname(__file__), "counted.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", plugin], check=True)

        def instructions(times, rows, product):
            words = [*emulator, "-plugin", plugin, os.path.join(build, "tests", "counted")]
            words += map(str, (rows, COLUMNS, TERMS, times, *product))
            printed = subprocess.run(words, check=True, stderr=subprocess.PIPE, text=True).stderr
            return int(re.search(r"^instructions (\d+)$", printed, re.M)[1])

        print("| |" + "".join(f" {rows} row{'s' * (rows > 1)} |" for rows in ROWS))
        print("|---|" + "---|" * len(ROWS))
        for name, product in PRODUCTS.items():
            print(f"| {name} |", end="", flush=True)
            for rows in ROWS:
                less, more = (instructions(times, rows, product) for times in (1, 3))
                print(f" {(more - less) / (2 * rows * COLUMNS * TERMS):.3f} |", end="", flush=True)
            print()


if len(sys.argv) < 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
