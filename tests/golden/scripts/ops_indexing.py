"""Golden values, first and second gradients of indexing and moves, from PyTorch. Run it to make ops_indexing.json
again."""
import torch
import torch.nn.functional as F

from golden import case, twice, write

g = torch.Generator().manual_seed(11)
cases = []


def real(*shape):
    return (torch.randn(shape, dtype=torch.float64, generator=g) * 4).round() / 4 + 0.125


def whole(high, *shape, low=0):
    return torch.randint(low, high, shape, generator=g)


def distinct(n, *shape, axis):
    """Indices of which no two are equal along an axis."""
    return torch.rand(*shape[:axis], n, *shape[axis + 1:], generator=g).argsort(axis).narrow(axis, 0, shape[axis])


def add(op, inputs, function, attributes=None, how=twice):
    cases.append(how(op, attributes or {}, inputs, function, g))


x = real(2, 3, 4)
for axis, shape in [(0, (5, 3, 4)), (1, (2, 2, 4)), (2, (2, 1, 6)), (-1, (1, 3, 3))]:
    n = x.shape[axis]
    add("take_along_axis", [x, whole(n, *shape, low=-n)],
        lambda t, i: torch.take_along_dim(t, i % n, axis), {"axis": axis})
    add("index_select", [x, whole(n, 4, low=-n)], lambda t, i: t.index_select(axis, i % n), {"axis": axis})
for axis, shape in [(0, (2, 3, 4)), (1, (2, 2, 3)), (2, (1, 3, 4))]:
    add("scatter_reduce", [x, distinct(x.shape[axis], *shape, axis=axis), real(*shape)],
        lambda t, i, p: t.scatter(axis, i, p), {"axis": axis, "reduce": "set"})
for axis, shape in [(0, (5, 3, 4)), (1, (1, 5, 3)), (2, (2, 3, 6))]:
    n = x.shape[axis]
    for reduce in ("sum", "mean", "prod", "amax", "amin"):
        for own in (True, False):
            part = real(*shape)
            part[0] = part[0].round() + 0.5  # with ties, and without zeros
            # Once differentiable: PyTorch's second gradients of means and products are not those of the function.
            # Without its own elements x has no ties: PyTorch counts them though they are left out.
            add("scatter_reduce", [x if own else x + 0.0625, whole(n, *shape), part],
                lambda t, i, p: t.scatter_reduce(axis, i, p, reduce, include_self=own),
                {"axis": axis, "reduce": reduce, "include_self": own}, how=case)
zeros = torch.tensor([0.0, 2.0, 0.0, 0.0, 1.5, 3.0], dtype=torch.float64)
add("scatter_reduce",
    [torch.tensor([1.5, 0.0, 2.0, 0.0], dtype=torch.float64), torch.tensor([0, 0, 1, 2, 2, 3]), zeros],
    lambda t, i, p: t.scatter_reduce(0, i, p, "prod"), {"axis": 0, "reduce": "prod"}, how=case)
for reduce in ("sum", "prod", "amax", "amin"):
    add("scatter_reduce", [whole(9, 4, low=-9), whole(4, 6), whole(9, 6, low=-9)],
        lambda t, i, p: t.scatter_reduce(0, i, p, reduce), {"axis": 0, "reduce": reduce})

for k, shape in [(1, (6, 1)), (2, (2, 3, 2)), (3, (4, 3)), (2, (0, 2)), (1, (1,))]:
    sizes = torch.tensor(x.shape[:k])
    indices = (torch.rand(shape, generator=g) * 2 * sizes - sizes).floor().long()
    rest = tuple(x.shape[k:])
    add("gather_nd", [x, indices], lambda t, i: t[tuple((i % sizes).unbind(-1))])
    add("scatter_nd", [x, indices, real(*shape[:-1], *rest)],
        lambda t, i, p: t.index_put(tuple((i % sizes).unbind(-1)), p, accumulate=True), {"reduce": "sum"})
places = torch.tensor([[0, 1], [1, 2], [1, 0]])
add("scatter_nd", [x, places, real(3, 4)], lambda t, i, p: t.index_put(tuple(i.unbind(-1)), p))
for reduce in ("amax", "amin", "prod", "mean"):
    add("scatter_nd", [real(4, 3), whole(4, 6, 1), real(6, 3)],
        lambda t, i, p: t.scatter_reduce(0, i.expand(6, 3), p, reduce), {"reduce": reduce}, how=case)

ids = torch.tensor([2, 0, 2, 4, 0, 2, 1])
for data in (real(7), real(7, 3)):
    spread = ids.reshape(-1, *[1] * (data.dim() - 1)).expand_as(data)
    for name, reduce, start in [("sum", "sum", 0.0), ("mean", "mean", 0.0), ("prod", "prod", 1.0),
                                ("max", "amax", -torch.inf), ("min", "amin", torch.inf)]:
        def segment(t, i):
            base = torch.full((6, *t.shape[1:]), start, dtype=t.dtype)
            return base.scatter_reduce(0, spread, t, reduce, include_self=reduce != "mean")
        add(f"segment_{name}", [data, ids], segment, {"num_segments": 6}, how=case)

    def softmax(t, i):
        raised = t.exp()
        return raised / torch.zeros(6, *t.shape[1:], dtype=t.dtype).index_add(0, i, raised)[i]
    add("segment_softmax", [data, ids], softmax, {"num_segments": 6})

holes = torch.tensor([[0.0, 1.5, 0.0], [2.5, 0.0, -1.0]], dtype=torch.float64)
for t in (holes, holes != 0, holes.long(), torch.ones((), dtype=torch.float64), torch.zeros(0, 2, dtype=torch.float64)):
    for size in (0, 2, 3, 5):
        add("nonzero_static", [t], lambda t: torch.nonzero_static(t, size=size, fill_value=-7),
            {"size": size, "fill_value": -7})
for mask in (torch.tensor([[True, False, True], [False, True, True]]), torch.tensor([False, True, False])):
    for size in (0, 2, 6):
        def selected(t, m):
            some = t[m.expand_as(t)][:size]
            return torch.cat([some, torch.full((size - len(some),), 9.5, dtype=t.dtype)])
        add("masked_select", [real(2, 3), mask], selected, {"size": size, "fill_value": 9.5})

for shifts, axis in [([2], []), ([-1], [0]), ([7], [2]), ([1, -2], [0, 1]), ([1, 1], [2, 2]), ([0], [1]),
                     ([-13], [-1])]:
    add("roll", [x], lambda t: t.roll(shifts, axis), {"shifts": shifts, "axis": axis})
for repeats, axis in [(1, 0), (3, 0), (2, 1), (4, -1), (0, 1)]:
    add("repeat_interleave", [x], lambda t: t.repeat_interleave(repeats, axis), {"repeats": repeats, "axis": axis})
for op, mode in [("reflection_pad", "reflect"), ("replication_pad", "replicate"), ("circular_pad", "circular")]:
    for left, right, top, bottom in [(1, 2, 0, 0), (3, 0, 2, 1), (0, 3, 1, 0), (2, 2, 2, 2), (0, 0, 0, 0)]:
        add(op, [x[None]], lambda t: F.pad(t, (left, right, top, bottom), mode),
            {"before": [0, 0, top, left], "after": [0, 0, bottom, right]})

write(cases, __file__)
