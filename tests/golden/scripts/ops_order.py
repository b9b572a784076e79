"""Golden values, first and second gradients of order, search and counting, from PyTorch and NumPy. Run it to make
ops_order.json again."""
import numpy
import torch

from golden import twice, write

g = torch.Generator().manual_seed(6)
nan = float("nan")
cases = []


def add(op, points, function, attributes=None, more=(), fixed=()):
    points = points if isinstance(points, torch.Tensor) else torch.tensor(points, dtype=torch.float64)
    cases.append(twice(op, attributes or {}, [points, *more], function, g, fixed))


def reals(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


x = [[0.5, -1.25, 2.0, 0.75, -0.5], [1.5, 0.25, -2.5, 3.0, 1.0], [0.0, -0.75, 4.0, -3.0, 0.125]]
holes = [[0.5, nan, 2.0, 0.75, -0.5], [1.5, 0.25, nan, nan, 1.0], [nan, nan, nan, nan, nan]]
ties = [[0.5, 0.5, -1.0, 0.75, 0.75], [1.5, 1.5, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0]]
counts = torch.tensor([[3, -1, 4, 0, 2], [7, 7, -2, 5, -2]])
for axis in (0, -1):
    for descending in (False, True):
        how = {"axis": axis, "descending": descending}
        for points in (x, ties, holes, counts):
            add("sort", points, lambda t: t.sort(dim=axis, descending=descending, stable=True), how)
        add("argsort", ties, lambda t: t.argsort(dim=axis, descending=descending, stable=True), how)
    for k in (1, 2, 3):
        for largest in (False, True):
            add("top_k", x, lambda t: t.topk(k, axis, largest), {"k": k, "axis": axis, "largest": largest})
        for keepdims in (False, True):
            add("kthvalue", x, lambda t: t.kthvalue(k, axis, keepdims), {"k": k, "axis": axis, "keepdims": keepdims})
for axis, keepdims in [([0], False), ([1], True), ([], False)]:
    how = {"axis": axis, "keepdims": keepdims}
    for points, fixed in (x, ()), (ties, (0,)), (holes, (0,)):  # which of several equal elements gets it, is free
        for op, f in ("median", torch.median), ("nanmedian", torch.nanmedian):
            add(op, points, lambda t: f(t, axis[0], keepdims)[0] if axis else f(t), how, (), fixed)
    for points, fixed in (x, ()), (holes, (0, 1)):
        for interpolation in ("linear", "lower", "higher", "nearest", "midpoint") if axis == [1] else ("linear",):
            for q in (torch.tensor(0.3, dtype=torch.float64), reals(0.0, 0.375, 1.0, 0.5)):
                for op, f in ("quantile", torch.quantile), ("nanquantile", torch.nanquantile):
                    add(op, points, lambda t, q: f(t, q, axis[0] if axis else None, keepdims,
                                                   interpolation=interpolation),
                        {**how, "interpolation": interpolation}, [q], fixed)
row, rows = reals(-1.0, 0.5, 0.5, 2.0), torch.tensor(x, dtype=torch.float64).sort()[0]
for right in (False, True):
    for values in (torch.tensor(ties, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)):
        add("searchsorted", row, lambda s, t: torch.searchsorted(s, t, right=right), {"right": right}, [values])
        add("bucketize", values, lambda t, s: torch.bucketize(t, s, right=right), {"right": right}, [row])
    add("searchsorted", rows, lambda s, t: torch.searchsorted(s, t.contiguous(), right=right), {"right": right},
        [torch.tensor(ties, dtype=torch.float64)[:, :3]])
picks = torch.tensor([2, 0, 2, 4, 2, 0])
add("bincount", picks, lambda t: t.bincount(minlength=7), {"length": 7})
add("bincount", picks, lambda t, w: torch.zeros(7, dtype=w.dtype).index_add(0, t, w), {"length": 7},
    [reals(0.5, 1.0, -2.0, 0.25, 3.0, 1.5)])
edges = reals(-1.25, 0.0, 0.5, 2.0)
for points in (x, ties, holes):
    add("histogram", points, lambda t, e: torch.tensor(numpy.histogram(t.detach().numpy(), e.detach().numpy())[0]), {},
        [edges])
    # torch.histogram sorts the weights in without a gradient, and refuses NaN; these are its bins.
    def weighted(t, e, w):
        bins = torch.searchsorted(e, t, right=True)
        bins = torch.where(t == e[-1], len(e) - 1, bins).flatten()
        return torch.zeros(len(e) + 1, dtype=w.dtype).index_add(0, bins, w.flatten())[1:-1]
    add("histogram", points, weighted, {}, [edges, torch.tensor(x, dtype=torch.float64)])

write(cases, __file__)
