"""Golden values, first and second gradients of reductions, from PyTorch. Run it to make ops_reductions.json again."""
import torch

from golden import twice, write

g = torch.Generator().manual_seed(4)
inf, nan = float("inf"), float("nan")
cases = []


def add(op, points, function, attributes=None, dtype=torch.float64):
    cases.append(twice(op, attributes or {}, [torch.tensor(points, dtype=dtype)], function, g))


x = [[0.5, -1.25, 2.0, 0.75, -0.5], [1.5, 0.25, -2.5, 3.0, 1.0]]
zeros = [[0.5, 0.0, 2.0, 0.75, -0.5], [0.0, 0.25, -2.5, 0.0, 1.0]]
holes = [[0.5, nan, 2.0, 0.75, -0.5], [1.5, 0.25, nan, nan, 1.0]]
ties = [[0.5, 0.5, -1.0, 0.75, 0.75], [1.5, 1.5, 3.0, 3.0, 1.0]]
counts = [[3, -1, 4, 0, 2], [7, 7, -2, 5, -2]]
for axis, keepdims in [([0], False), ([1], True), ([], False)]:
    axes = tuple(axis) or (0, 1)
    attributes = {"axis": axis, "keepdims": keepdims}
    for points in (x, zeros):
        add("prod", points, lambda t: t.prod(axis[0], keepdim=keepdims) if axis else t.prod(), attributes)
    for p in (1, 2, 3, 1.5, inf, -inf):  # PyTorch has no gradient of order 0
        add("vector_norm", x, lambda t: torch.linalg.vector_norm(t, p, axes, keepdim=keepdims),
            {**attributes, "p": float(p)})
    for correction in (0, 1):
        add("std", x, lambda t: t.std(axes, correction=correction, keepdim=keepdims),
            {**attributes, "correction": correction})
    add("nansum", holes, lambda t: t.nansum(axes, keepdim=keepdims), attributes)
    add("nanmean", holes, lambda t: t.nanmean(axes, keepdim=keepdims), attributes)
    add("count_nonzero", zeros, lambda t: t.count_nonzero(axes).reshape(2, 1) if keepdims else t.count_nonzero(axes),
        attributes)
add("prod", counts, lambda t: t.prod(1), {"axis": [1]}, torch.int64)
for axis in (0, 1):
    for points in (x, ties, holes):
        add("cummax", points, lambda t: t.cummax(axis), {"axis": axis})
        add("cummin", points, lambda t: t.cummin(axis), {"axis": axis})
    for points in (x, zeros):
        add("cumprod", points, lambda t: t.cumprod(axis), {"axis": axis})
    add("logcumsumexp", x, lambda t: t.logcumsumexp(axis), {"axis": axis})
    for keepdims in (False, True):
        add("argmin", ties, lambda t: t.argmin(axis, keepdim=keepdims), {"axis": axis, "keepdims": keepdims})
add("cummax", counts, lambda t: t.cummax(1), {"axis": 1}, torch.int64)
add("cummin", counts, lambda t: t.cummin(1), {"axis": 1}, torch.int64)
add("logcumsumexp", [[700.0, 710.0, -800.0, 800.0]], lambda t: t.logcumsumexp(1), {"axis": 1})

write(cases, __file__)
