"""What the scripts that make golden files share: the file format of tests/support/golden.hpp, and safetensors."""
import array as arrays
import json
import math
import os
import struct

import torch

NAMES = {torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.int64: "int64",
         torch.bool: "bool"}


def number(x):
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def array(t):
    if t is None:
        return None
    t = t.detach()
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data": [number(x) for x in t.reshape(-1).tolist()]}


def case(op, attributes, inputs, function, generator):
    """Runs function(*inputs) with gradients for every floating input, under random cotangents."""
    inputs = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in inputs]
    outputs = function(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    result = {"op": op, "attributes": {k: number(v) for k, v in attributes.items()},
              "inputs": [array(t) for t in inputs], "outputs": [array(t) for t in outputs]}
    floating = [t for t in outputs if t.requires_grad]
    if floating:
        cotangents = [torch.randn(t.shape, dtype=t.dtype, generator=generator) if t.requires_grad else None
                      for t in outputs]
        wanted = [t for t in inputs if t.requires_grad]
        gradients = iter(torch.autograd.grad(floating, wanted, [c for c in cotangents if c is not None]))
        result["cotangents"] = [array(c) for c in cotangents]
        result["gradients"] = [array(next(gradients)) if t.requires_grad else None for t in inputs]
    return result


def twice(op, attributes, inputs, function, generator, fixed=()):
    """As `case`, with second gradients, and with short random numbers. No gradients for inputs number `fixed`."""
    def short(t):
        return (torch.randn(t.shape, dtype=t.dtype, generator=generator) * 4).round() / 4 + 0.125

    inputs = [t.detach().clone().requires_grad_(t.is_floating_point() and i not in fixed) for i, t in enumerate(inputs)]
    outputs = function(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    result = {"op": op, "attributes": {k: number(v) for k, v in attributes.items()},
              "inputs": [array(t) for t in inputs], "outputs": [array(t) for t in outputs]}
    floating, wanted = [t for t in outputs if t.requires_grad], [t for t in inputs if t.requires_grad]
    if not floating:
        return result
    cotangents = [short(t) if t.requires_grad else None for t in outputs]
    gradients = torch.autograd.grad(floating, wanted, [c for c in cotangents if c is not None], create_graph=True,
                                    materialize_grads=True)
    directions = [short(t) for t in wanted]
    flowing = [(y, d) for y, d in zip(gradients, directions) if y.requires_grad]
    second = torch.autograd.grad([y for y, _ in flowing], wanted, [d for _, d in flowing],
                                 materialize_grads=True) if flowing else [torch.zeros_like(t) for t in wanted]

    def per_input(arrays):
        each = iter(arrays)
        # Zeros of autograd have no memory of their own.
        return [array(torch.zeros(t.shape, dtype=t.dtype) + next(each)) if t.requires_grad else None for t in inputs]

    result |= {"cotangents": [array(c) for c in cotangents], "gradients": per_input(gradients),
               "directions": per_input(directions), "second": per_input(second)}
    return result


def adam_losses(model, loss):
    """The losses before each of ten steps of Adam, with the settings that the golden tests of models use."""
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9), []
    for _ in range(10):
        optimiser.zero_grad()
        value = loss()
        value.backward()
        optimiser.step()
        losses.append(value.detach())
    return torch.stack(losses)


def write(cases, script, separators=None):
    """Writes the cases to the folder of data, under the name of the script."""
    name = os.path.relpath(os.path.abspath(script), os.path.dirname(os.path.abspath(__file__)))
    with open(in_data(os.path.splitext(name)[0] + ".json"), "w") as file:
        file.write('{"cases": [\n' + ",\n".join(json.dumps(c, separators=separators) for c in cases) + "\n]}\n")


def save(path, tensors):
    """Writes safetensors: the length of the header, the header, the elements."""
    kinds = {torch.float32: ("F32", "f"), torch.float64: ("F64", "d"), torch.int64: ("I64", "q")}
    header, data = {}, b""
    for name, value in tensors.items():
        dtype, code = kinds[value.dtype]
        elements = arrays.array(code, value.flatten().tolist()).tobytes()
        header[name] = dict(dtype=dtype, shape=list(value.shape), data_offsets=[len(data), len(data) + len(elements)])
        data += elements
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def in_data(name):
    """The path of a file in the folder of data."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", name)
