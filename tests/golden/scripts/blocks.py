#!/usr/bin/env python3
"""Makes blocks.safetensors: what the package gguf reads from blocks and rounds to blocks. Needs gguf and numpy.

"NAME.blocks" are bytes of random blocks, one row a block, and "NAME.values" what gguf reads from them. "numbers" are
float32, and "NAME.rounded" the bytes that gguf makes from them."""
import os

import gguf
import numpy
from safetensors.numpy import save_file

READ = "F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K".split()
WRITTEN = "F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1".split()
SCALES = {"F16": [0], "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def random_blocks(name, generator):
    """Random bytes. The scales are finite: 0, subnormal, and of usual sizes, of both signs."""
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    count = 3 if elements > 1 else 64
    blocks = generator.integers(0, 256, (count, size), dtype=numpy.uint8)
    scales = generator.normal(0, 0.1, (count, 2)).astype(numpy.float16)
    scales[0], scales[1, 0] = 0, numpy.float16(3e-6)
    for i, at in enumerate(SCALES.get(name, [])):
        blocks[:, at:at + 2] = scales[:, i:i + 1].view(numpy.uint8)
    if name == "BF16":
        blocks = generator.normal(0, 1e10, count).astype(numpy.float32).view(numpy.uint8).reshape(count, 4)[:, 2:].copy()
    return blocks


def random_numbers(generator):
    """Blocks of 32: normal, of one sign, of very different sizes, with halves, constant, zero, and large outliers."""
    x = generator.normal(0, 1, (12, 32)).astype(numpy.float32)
    x[1] = abs(x[1])
    x[2] *= numpy.float32(10) ** generator.integers(-6, 3, 32).astype(numpy.float32)
    x[3] = numpy.round(x[3] * 8) / 2
    x[3, 5] = 127 / 2
    x[4] = 0.3
    x[5] = 0
    x[6, 7] = -300
    x[7] = -abs(x[7])
    x[8, :2] = -4, 4
    x[9] *= 1e-6
    x[10] = numpy.arange(32) - 16
    return x


def main():
    generator = numpy.random.default_rng(70)
    arrays = {"numbers": random_numbers(generator)}
    for name in READ:
        blocks, kind = random_blocks(name, generator), gguf.GGMLQuantizationType[name]
        arrays[name + ".blocks"] = blocks
        arrays[name + ".values"] = gguf.quants.dequantize(blocks, kind).astype(numpy.float32)
    for name in WRITTEN:
        rounded = gguf.quants.quantize(arrays["numbers"], gguf.GGMLQuantizationType[name])
        arrays[name + ".rounded"] = numpy.ascontiguousarray(rounded).view(numpy.uint8)
    here = os.path.dirname(os.path.abspath(__file__))
    save_file(arrays, os.path.join(here, "../data/blocks.safetensors"))


if __name__ == "__main__":
    main()
