"""What the scripts of this folder share: at least 20 cases of each op, in the manner of PyTorch's OpInfo, with values,
first and second gradients in float64."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from golden import array, twice, write  # noqa: E402

inf, nan = float("inf"), float("nan")
generator = torch.Generator().manual_seed(20)
cases = []

# A number, one element, no element, one to four axes, axes of length 0 and 1.
SHAPES = [(), (1,), (4,), (0,), (2, 3), (3, 1), (2, 0, 3), (1, 2, 2), (2, 2, 2), (1, 1, 1, 3)]
# Pairs that broadcast: the same shapes, numbers, missing axes, axes of length 1 on either side or on both, and empty ones.
PAIRS = [((3,), (3,)), ((), ()), ((), (3,)), ((2, 2), ()), ((2, 3), (3,)), ((2,), (3, 2)), ((2, 1), (1, 3)),
         ((2, 2), (2, 1)), ((1,), (1,)), ((0,), (0,)), ((0,), (1,)), ((2, 0), (2, 1)), ((2, 1, 2), (3, 1)),
         ((1, 1, 2), (2, 2, 1))]


def real(*shape, low=-3.0, high=3.0):
    """Short numbers of [low, high], no two of them equal, and none of them a whole number or a half."""
    count = torch.Size(shape).numel()
    steps = torch.randperm(max(64, 4 * count), generator=generator)[:count]
    t = low + (high - low) * (steps.double() + 0.5) / max(64, 4 * count)
    return ((t * 1024).round() / 1024 + 2**-12).reshape(shape)


def whole(high, *shape, low=0):
    return torch.randint(low, high, shape, generator=generator)


def tensor(points):
    return points if isinstance(points, torch.Tensor) else torch.tensor(points, dtype=torch.float64)


def add(op, inputs, function, attributes=None, fixed=()):
    """A case with gradients for the floating inputs that are not `fixed`."""
    cases.append(twice(op, attributes or {}, [tensor(t) for t in inputs], function, generator, fixed))


def value(op, inputs, function, attributes=None):
    """A case without gradients."""
    inputs = [tensor(t) for t in inputs]
    outputs = function(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    cases.append({"op": op, "attributes": attributes or {}, "inputs": [array(t) for t in inputs],
                  "outputs": [array(t) for t in outputs]})


def shortened(each):
    """13 digits are enough for a tolerance of 1e-10, and save a fifth of the files."""
    if isinstance(each, float):
        return float(f"{each:.13g}")
    if isinstance(each, list):
        return [shortened(e) for e in each]
    return {k: shortened(v) for k, v in each.items()} if isinstance(each, dict) else each


def finish(script):
    write([{k: v if k in ("inputs", "attributes") else shortened(v) for k, v in c.items()} for c in cases], script,
          separators=(",", ":"))
    counts = {}
    for each in cases:
        counts[each["op"]] = counts.get(each["op"], 0) + 1
    few = {op: count for op, count in counts.items() if count < 20}
    print(len(counts), "ops,", len(cases), "cases;", "fewer than 20:", few)
