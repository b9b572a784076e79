#!/usr/bin/env python3
"""Makes halves.json: what NumPy converts float16 to and from. Needs numpy.

"widened" is the hash of all 65536 float16 numbers as float32, with one NaN for all. "rounded" is that of float32 numbers
as float16: for every two neighbours among 0 and the positive numbers up to 2^16, what lies half way, the float32 below it
and the one above it; then all of these with the other sign. "numbers" has single ones: [bits of float32, of float16].
The hash is the 64-bit FNV-1a of the little-endian bytes."""
import json
import os

import numpy

INFINITE = 0x7C00


def hash_of(array):
    value = 0xCBF29CE484222325
    for byte in array.tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def main():
    widened = numpy.arange(2**16, dtype=numpy.uint16).view(numpy.float16).astype(numpy.float32)
    widened[numpy.isnan(widened)] = numpy.uint32(0x7FC00000).view(numpy.float32)
    edges = widened[:INFINITE + 1].copy()
    edges[INFINITE] = 2**16
    middle = (edges[:-1] + edges[1:]) / numpy.float32(2)
    zero, endless = numpy.float32(0), numpy.float32(numpy.inf)
    floats = numpy.stack([numpy.nextafter(middle, zero), middle, numpy.nextafter(middle, endless)], 1).reshape(-1)
    floats = numpy.concatenate([floats, -floats])
    with numpy.errstate(over="ignore"):
        rounded = floats.astype(numpy.float16)
        single = numpy.array([0, -0.0, 1, 1 / 3, -2.5, 65504, 65519.996, 65520, -65536, 1e30, 2**-14, 2**-14 - 2**-25, 6e-8,
                              2**-25, 3 * 2**-25, 1e-40, numpy.inf, -numpy.inf], numpy.float32)
        numbers = [[int(a), int(b)] for a, b in zip(single.view(numpy.uint32), single.astype(numpy.float16).view(numpy.uint16))]
    fixture = {"widened": hash_of(widened), "rounded": hash_of(rounded), "numbers": numbers}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "halves.json"), "w") as file:
        json.dump(fixture, file)
        file.write("\n")


main()
