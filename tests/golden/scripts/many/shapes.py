"""Golden values, first and second gradients of ops that move, place and index elements, from PyTorch. Makes shapes.json
again."""
import torch
from torch.nn import functional as F

from cases import add, finish, real, value, whole

FORMS = [(4,), (1,), (0,), (2, 3), (3, 1), (2, 0), (2, 2, 3), (2, 1, 3), (1, 2, 1, 2)]
# Shapes with one of their axes.
PLACED = [((4,), 0), ((4,), -1), ((0,), 0), ((2, 3), 0), ((2, 3), 1), ((3, 1), -1), ((2, 0), 0), ((2, 2, 3), 1),
          ((2, 2, 3), -1), ((2, 1, 3), 1), ((1, 2, 1, 2), -3)]

for old, new in [((), (1,)), ((), (1, 1)), ((1,), ()), ((4,), (2, 2)), ((4,), (-1,)), ((4,), (1, -1, 2)), ((0,), (0,)),
                 ((0,), (2, 0)), ((2, 0), (0,)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((2, 3), (3, -1)), ((2, 3), (2, 3)),
                 ((3, 1), (3,)), ((2, 2, 3), (4, 3)), ((2, 2, 3), (2, -1)), ((2, 2, 3), (3, 2, 2)), ((1, 1), ()),
                 ((1, 2, 1, 2), (2, 2)), ((2, 2, 3), (2, 1, 2, 1, 3))]:
    add("reshape", [real(*old)], lambda t: t.reshape(new), {"shape": list(new)})
for old, new in [((), ()), ((), (3,)), ((), (2, 0)), ((1,), (3,)), ((1,), (1,)), ((1,), (0,)), ((3,), (3,)),
                 ((3,), (2, 3)), ((1, 3), (2, 3)), ((3, 1), (3, 2)), ((3, 1), (2, 3, 2)), ((1, 1), (2, 3)),
                 ((2, 1, 2), (2, 3, 2)), ((2, 1, 1), (2, 2, 2)), ((1, 2, 1), (2, 2, 2)), ((0,), (2, 0)),
                 ((0, 1), (0, 3)), ((2, 3), (1, 2, 3)), ((1, 1, 1), (1, 4, 1)), ((2,), (2, 2, 2))]:
    add("broadcast_to", [real(*old)], lambda t: t.broadcast_to(new), {"shape": list(new)})
for shape, axes in [((), []), ((4,), [0]), ((2, 3), [1, 0]), ((2, 3), [0, 1]), ((3, 1), [1, 0]), ((2, 0), [1, 0]),
                    *[((2, 2, 3), axes) for axes in ([0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 1, 2])],
                    *[((1, 2, 1, 2), axes) for axes in ([3, 2, 1, 0], [0, 3, 2, 1], [1, 0, 3, 2], [2, 3, 0, 1])],
                    ((2, 1, 2, 1, 2), [4, 1, 0, 3, 2])]:
    add("transpose", [real(*shape)], lambda t: t.permute(axes), {"axes": axes})
for shape in FORMS[:5]:
    add("transpose", [real(*shape)], lambda t: t.permute(*reversed(range(t.dim()))))
for shape in [(), *FORMS]:
    for axis in (0, -1, len(shape)):
        add("expand_dims", [real(*shape)], lambda t: t.unsqueeze(axis), {"axis": axis})
for shape, axis in [((1,), [0]), ((1,), [-1]), ((3, 1), [1]), ((1, 3), [0]), ((1, 1), [0]), ((1, 1), [0, 1]),
                    ((2, 1, 3), [1]), ((1, 2, 1, 2), [0]), ((1, 2, 1, 2), [2]), ((1, 2, 1, 2), [0, 2]),
                    ((1, 2, 1, 2), [-2]), ((0, 1), [1]), ((1, 0), [0]), ((1, 1, 1), [1])]:
    add("squeeze", [real(*shape)], lambda t: t.squeeze(tuple(axis)), {"axis": axis})
for shape in [(1,), (1, 1), (3, 1), (1, 0), (2, 1, 3), (1, 2, 1, 2)]:
    add("squeeze", [real(*shape)], lambda t: t.squeeze())

for shape, axis in PLACED:
    n = shape[axis]
    longer = list(shape)
    longer[axis] = n + 2
    add("concat", [real(*shape), real(*longer)], lambda *t: torch.cat(t, axis), {"axis": axis})
    add("concat", [real(*shape)] * 3, lambda *t: torch.cat(t, axis), {"axis": axis})
    add("stack", [real(*shape), real(*shape)], lambda *t: torch.stack(t, axis), {"axis": axis})
    add("stack", [real(*shape)], lambda *t: torch.stack(t, axis), {"axis": axis})
    for sizes in ([n], [n // 2, n - n // 2], [0, n]):
        add("split", [real(*shape)], lambda t: t.split(sizes, axis), {"sizes": sizes, "axis": axis})
    if n:
        for extra in (0, 1):
            part = list(shape)
            part[axis] += extra
            add("unstack", [real(*part)], lambda t: t.unbind(axis), {"axis": axis})
    add("flip", [real(*shape)], lambda t: t.flip(axis), {"axis": [axis]})
    for shift in (1, -2):
        add("roll", [real(*shape)], lambda t: t.roll(shift, axis), {"shifts": [shift], "axis": [axis]})
    for repeats in (1, 3):
        add("repeat_interleave", [real(*shape)], lambda t: t.repeat_interleave(repeats, axis),
            {"repeats": repeats, "axis": axis})
for shape in FORMS:
    add("flip", [real(*shape)], lambda t: t.flip(tuple(range(t.dim()))))
    add("roll", [real(*shape)], lambda t: t.roll(3), {"shifts": [3]})
    for count in (1, 2, 3):
        repeats = [count, *[2] * (len(shape) - 1)]
        add("tile", [real(*shape)], lambda t: t.tile(repeats), {"repeats": repeats})
for shape in [*FORMS[3:], (3, 3), (3, 4), (4, 2), (2, 3, 3)]:
    for diagonal in (-1, 0, 1, 5):
        add("tril", [real(*shape)], lambda t: t.tril(diagonal), {"diagonal": diagonal})
        add("triu", [real(*shape)], lambda t: t.triu(diagonal), {"diagonal": diagonal})
for shape in [*FORMS, *FORMS, (5,), (2, 4)]:
    add("diag_embed", [real(*shape)], torch.diag_embed)
for shape, first, second in [((2, 2), 0, 1), ((3, 3), 1, 0), ((1, 1), 0, 1), ((0, 0), 0, 1), ((2, 3, 3), 1, 2),
                             ((3, 2, 3), 0, 2), ((3, 3, 2), 0, 1), ((3, 3, 2), 1, 0), ((0, 2, 2), 1, 2),
                             ((2, 2, 2), 2, 0)] * 2:
    add("diagonal", [real(*shape)], lambda t: t.diagonal(dim1=first, dim2=second), {"axis1": first, "axis2": second})

SLICES = [((4,), [0], [4], [1]), ((4,), [1], [3], [1]), ((4,), [0], [4], [2]), ((4,), [1], [4], [3]),
          ((4,), [2], [2], [1]), ((0,), [0], [0], [1]), ((2, 3), [0, 1], [2, 3], [1, 1]), ((2, 3), [1, 0], [2, 3], [1, 2]),
          ((2, 3), [0, 2], [1, 3], [1, 1]), ((2, 0), [1, 0], [2, 0], [1, 1]), ((3, 1), [0, 0], [3, 1], [2, 1]),
          ((2, 2, 3), [0, 1, 0], [2, 2, 3], [1, 1, 2]), ((2, 2, 3), [1, 0, 1], [2, 2, 2], [1, 1, 1]),
          ((2, 2, 3), [0, 0, 0], [2, 2, 3], [2, 2, 2]), ((2, 1, 3), [0, 0, 2], [2, 1, 3], [1, 1, 1]),
          ((1, 2, 1, 2), [0, 1, 0, 0], [1, 2, 1, 2], [1, 1, 1, 1]), ((6,), [1], [6], [2]), ((7,), [0], [7], [3]),
          ((5, 5), [1, 0], [5, 5], [2, 3]), ((3, 4), [2, 1], [3, 4], [1, 2])]
for shape, start, stop, step in SLICES:
    at = tuple(slice(*each) for each in zip(start, stop, step))
    add("slice", [real(*shape)], lambda t: t[at], {"start": start, "stop": stop, "step": step})

    def update(t, p):
        y = t.clone()
        y[at] = p
        return y
    x = real(*shape)
    add("update_slice", [x, real(*x[at].shape)], update, {"start": start, "step": step})
for shape in FORMS:
    before, after = list(range(len(shape))), [2 - i % 3 for i in range(len(shape))]
    pairs = [n for i in reversed(range(len(shape))) for n in (before[i], after[i])]
    for fill in (0.0, -1.5):
        add("pad", [real(*shape)], lambda t: F.pad(t, pairs, value=fill), {"before": before, "after": after, "value": fill})
add("pad", [real(2, 2)], lambda t: t + 0, {"before": [0, 0], "after": [0, 0]})
value("pad", [whole(9, 2, 2)], lambda t: F.pad(t, (1, 1), value=3), {"before": [0, 1], "after": [0, 1], "value": 3})
for op, mode in [("reflection_pad", "reflect"), ("replication_pad", "replicate"), ("circular_pad", "circular")]:
    for shape, sides in [((4,), (1, 2)), ((4,), (3, 0)), ((4,), (0, 3)), ((3,), (2, 2)), ((5,), (1, 0)),
                         ((3, 4), (1, 2, 0, 1)), ((3, 4), (0, 0, 2, 2)), ((3, 2), (1, 1, 1, 1)), ((2, 2), (0, 1, 1, 0)),
                         ((3, 4), (3, 3, 2, 2)), ((2, 2), (1, 0, 0, 0)), ((2, 3, 2), (1, 1, 0, 2, 1, 0)),
                         ((2, 2, 2), (1, 1, 1, 1, 1, 1)), ((2,), (1, 1)), ((6,), (4, 5))]:
        n = len(shape)
        before = [0, 0, *[sides[2 * i] for i in reversed(range(n))]]
        after = [0, 0, *[sides[2 * i + 1] for i in reversed(range(n))]]
        for batch in ((1, 2), (2, 1))[:1 if n == 3 else 2]:
            add(op, [real(*batch, *shape)], lambda t: F.pad(t, sides, mode), {"before": before, "after": after})


def spread(indices, axis, shape):
    """Indices along one axis for whole slices."""
    return indices.reshape([-1 if a == axis % len(shape) else 1 for a in range(len(shape))]).expand(
        [len(indices) if a == axis % len(shape) else n for a, n in enumerate(shape)])


for shape, axis in PLACED:
    n = shape[axis]
    if n == 0:
        continue
    for count in (1, 3):
        picks = whole(n, count)
        part = list(shape)
        part[axis] = count
        add("take", [real(*shape), picks], lambda t, i: t.index_select(axis, i), {"axis": axis})
        add("index_select", [real(*shape), picks], lambda t, i: t.index_select(axis, i), {"axis": axis})
        add("index_add", [real(*shape), picks, real(*part)], lambda t, i, p: t.index_add(axis, i, p), {"axis": axis})
        places = whole(n, *part)
        add("gather", [real(*shape), places], lambda t, i: t.gather(axis, i), {"axis": axis})
        add("take_along_axis", [real(*shape), places], lambda t, i: t.gather(axis, i), {"axis": axis})
        add("scatter_add", [real(*shape), places, real(*part)], lambda t, i, p: t.scatter_add(axis, i, p), {"axis": axis})
        some = whole(n, *part, low=-n)
        add("index_select", [real(*shape), picks - n], lambda t, i: t.index_select(axis, i + n), {"axis": axis})
        add("take_along_axis", [real(*shape), some], lambda t, i: t.gather(axis, i % n), {"axis": axis})
    # A matrix of indices: their axes take the place of the axis.
    pairs = whole(n, 2, 2)
    add("take", [real(*shape), pairs], lambda t, i: t.index_select(axis, i.flatten()).unflatten(axis, (2, 2)),
        {"axis": axis})
for n, shape in [(1, ()), (4, ()), (4, (3,)), (2, (0,)), (3, (2, 2)), (1, (2, 1, 2)), (5, (1,)), (7, (5,)), (3, (1, 0))]:
    for dtype in ("float32", "int64"):
        for indices in (whole(n, *shape), whole(n, *shape).int()):
            kind = torch.float32 if dtype == "float32" else torch.int64
            value("one_hot", [indices], lambda i: F.one_hot(i.long(), n).to(kind), {"classes": n, "dtype": dtype})
for shape, k, batch in [((4,), 1, (3,)), ((4,), 1, ()), ((2, 3), 1, (3,)), ((2, 3), 2, (4,)), ((2, 3), 2, (2, 2)),
                        ((2, 2, 3), 1, (2,)), ((2, 2, 3), 2, (3,)), ((2, 2, 3), 3, (2, 2)), ((3, 1), 2, (0,)),
                        ((2, 0), 1, (2,)), ((1, 2, 1, 2), 4, (3,)), ((1, 2, 1, 2), 2, (2,))]:
    sizes = torch.tensor(shape[:k])
    for _ in range(2):
        indices = (torch.rand(*batch, k, generator=torch.Generator().manual_seed(len(batch))) * 2 * sizes - sizes).floor().long()
        at = lambda i: tuple((i % sizes).unbind(-1))
        add("gather_nd", [real(*shape), indices], lambda t, i: t[at(i)])
        add("scatter_nd", [real(*shape), indices, real(*batch, *shape[k:])],
            lambda t, i, p: t.index_put(at(i), p, accumulate=True), {"reduce": "sum"})
for rows, width, segments in [(1, None, 1), (5, None, 3), (0, None, 2), (5, 2, 3), (3, 1, 3), (6, 3, 2), (4, 0, 2),
                              (7, None, 7), (7, 2, 9), (2, 2, 1)]:
    for _ in range(2):
        ids = whole(segments, rows)
        shape = (rows,) if width is None else (rows, width)
        index = ids.reshape(-1, *[1] * (len(shape) - 1)).expand(shape)
        for name, reduce, start in [("sum", "sum", 0.0), ("mean", "mean", 0.0), ("prod", "prod", 1.0),
                                    ("max", "amax", -torch.inf), ("min", "amin", torch.inf)]:
            def segment(t, i):
                base = torch.full((segments, *t.shape[1:]), start, dtype=t.dtype)
                return base.scatter_reduce(0, index, t, reduce, include_self=reduce != "mean")
            (add if name in ("sum", "max", "min") else value)(f"segment_{name}", [real(*shape), ids], segment,
                                                              {"num_segments": segments})

        def softmax(t, i):
            raised = t.exp()
            return raised / torch.zeros(segments, *t.shape[1:], dtype=t.dtype).index_add(0, i, raised)[i]
        add("segment_softmax", [real(*shape), ids], softmax, {"num_segments": segments})
for shape in [(3,), (2, 2), (2, 0), (4,), (2, 1, 2)]:
    for size in (0, 2, 3, 6):
        def selected(t, m):
            some = t[m][:size]
            return torch.cat([some, torch.full((size - len(some),), 9.5, dtype=t.dtype)])
        add("masked_select", [real(*shape), whole(2, *shape).bool()], selected, {"size": size, "fill_value": 9.5})
for rows in (0, 1, 3, 4):
    for columns in (0, 1, 3, 4, 5):
        value("eye", [], lambda: torch.eye(rows, columns), {"rows": rows, "columns": columns, "dtype": "float32"})
for shape in [(), (0,), (1,), (3,), (2, 3), (2, 0), (1, 1), (2, 1, 2), (1, 2, 3), (2, 2, 1, 1)]:
    for dtype, kind in [("float64", torch.float64), ("int32", torch.int32)]:
        value("full", [], lambda: torch.full(shape, -2, dtype=kind), {"shape": list(shape), "value": -2, "dtype": dtype})
        value("zeros", [], lambda: torch.zeros(shape, dtype=kind), {"shape": list(shape), "dtype": dtype})
        value("ones", [], lambda: torch.ones(shape, dtype=kind), {"shape": list(shape), "dtype": dtype})
for shape, axis in PLACED:
    for dtype, kind in [("int64", torch.int64), ("float32", torch.float32)]:
        value("iota", [], lambda: spread(torch.arange(shape[axis]), axis, shape).to(kind),
              {"shape": list(shape), "axis": axis, "dtype": dtype})
for bags, n, width in [((2, 3), 4, 5), ((3, 2), 2, 1), ((1, 1), 3, 2), ((4, 1), 1, 3), ((3, 4), 5, 2), ((2, 2), 3, 7),
                       ((5, 2), 4, 3)]:
    for mode in ("sum", "mean"):
        add("embedding_bag", [whole(n, *bags), real(n, width)], lambda i, w: F.embedding_bag(i, w, mode=mode),
            {"mode": mode})
    add("embedding_bag", [whole(n, *bags), real(n, width), real(*bags)],
        lambda i, w, f: (w[i] * f[:, :, None]).sum(1), {"mode": "sum"})

finish(__file__)
