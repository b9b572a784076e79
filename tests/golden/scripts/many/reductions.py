"""Golden values, first and second gradients of reductions, of order and of search, from PyTorch and NumPy. Makes
reductions.json again."""
import numpy
import torch

from cases import add, finish, inf, nan, real, tensor, value, whole

# Shapes with the axes that are reduced: all, one, several, from the end; axes of length 1 and 0.
AXES = [((), []), ((1,), [0]), ((4,), []), ((4,), [-1]), ((2, 3), []), ((2, 3), [0]), ((2, 3), [1]), ((3, 1), [1]),
        ((2, 2, 3), [0, 2]), ((2, 2, 3), [1]), ((2, 1, 3), [-2, -1]), ((0, 2), [1]), ((2, 2, 1, 2), [0, 3])]
EMPTY = [((0,), []), ((2, 0), [1]), ((0, 3), [0])]
SPECIAL = [[[1.0, nan, 2.0], [0.5, 1.5, -1.0]], [[inf, 1.0, 2.0], [-inf, 3.0, inf]], [[1e300, 1e300, -1e300],
                                                                                     [1e-300, 1e-300, 0.0]]]


def reduction(op, function, kinds=({},), empty=True, shapes=AXES, special=SPECIAL, grad=add, scales=False):
    """function(t, axes, keepdims, **kind). If `scales`, the special points are scaled by their largest number, because
    PyTorch's powers overflow."""
    for kind in kinds:
        for keepdims in (False, True):
            for shape, axis in shapes + (EMPTY if empty else []):
                axes = tuple(axis) if axis else tuple(range(len(shape)))
                grad(op, [real(*shape)], lambda t: function(t, axes, keepdims, **kind),
                     {"axis": axis, "keepdims": keepdims, **kind})
    def at_special(t):
        largest = t.abs().amax(1, keepdim=True)
        if not scales or not largest.isfinite().all():
            return function(t, (1,), False, **kinds[0])
        return function(t / largest, (1,), False, **kinds[0]) * largest.squeeze(1)

    for points in special:
        value(op, [points], at_special, {"axis": [1], **kinds[0]})


def each_axis(f):
    """A reduction over several axes by one over a single axis."""
    def reduce(t, axes, keepdims):
        axes = [a % max(t.dim(), 1) for a in axes]
        for a in sorted(axes, reverse=True):
            t = f(t, a, keepdims)
        return t
    return reduce


def flat(f):
    """A reduction over several axes by one over the last axis."""
    def reduce(t, axes, keepdims, **kind):
        axes = [a % max(t.dim(), 1) for a in axes]
        rest = [a for a in range(t.dim()) if a not in axes]
        last = torch.Size([t.shape[a] for a in axes]).numel()
        y = f(t.permute(rest + axes).reshape([t.shape[a] for a in rest] + [last]), **kind)
        return y.reshape([1 if a in axes else t.shape[a] for a in range(t.dim())]) if keepdims else y
    return reduce


reduction("sum", lambda t, a, k: t.sum(a, keepdim=k) if a else t + 0)
reduction("mean", lambda t, a, k: t.mean(a, keepdim=k) if a else t + 0, empty=False)
reduction("prod", each_axis(lambda t, a, k: t.prod(a, keepdim=k)))
reduction("max", lambda t, a, k: t.amax(a, keepdim=k) if a else t + 0, empty=False)
reduction("min", lambda t, a, k: t.amin(a, keepdim=k) if a else t + 0, empty=False)
reduction("logsumexp", lambda t, a, k: torch.logsumexp(t, a, k) if a else t + 0, empty=False)
some = [each for each in AXES if torch.Size(each[0]).numel() > 3 and each[0] != (3, 1)]
for op, f in ("var", torch.var), ("std", torch.std):
    reduction(op, lambda t, a, k, correction: f(t, a, correction=correction, keepdim=k),
              ({"correction": 0}, {"correction": 1}), False, some, scales=op == "std")
reduction("nansum", lambda t, a, k: t.nansum(a, keepdim=k) if a else t + 0)
reduction("nanmean", lambda t, a, k: t.nanmean(a, keepdim=k) if a else t + 0, empty=False)
for p in (1.0, 2.0, 3.0):
    reduction("vector_norm", lambda t, a, k, p: torch.linalg.vector_norm(t, p, a if a else None, k), ({"p": p},),
              False, AXES[:8], scales=True)
reduction("median", flat(lambda t: t.median(-1)[0]), empty=False, special=SPECIAL[:2])
reduction("nanmedian", flat(lambda t: t.nanmedian(-1)[0]), empty=False, special=SPECIAL[:2])
for keepdims in (False, True):
    for shape, axis in AXES + EMPTY:
        axes = tuple(axis) if axis else tuple(range(len(shape)))
        numbers = (real(*shape) * 0.5).round()
        for op in ("any", "all"):
            f = flat(lambda t: getattr(t, op)(-1))
            value(op, [whole(2, *shape).bool()], lambda t: f(t, axes, keepdims), {"axis": axis, "keepdims": keepdims})
        f = flat(lambda t: t.count_nonzero(-1))
        value("count_nonzero", [numbers], lambda t: f(t, axes, keepdims), {"axis": axis, "keepdims": keepdims})

# Along one axis.
LINES = [((1,), 0), ((4,), -1), ((0,), 0), ((2, 3), 0), ((2, 3), 1), ((3, 1), 1), ((0, 3), 1), ((2, 2, 3), 1),
         ((2, 3, 2), -1), ((2, 1, 2, 2), 2)]
TIES = tensor([[1.0, 1.0, -2.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
HOLES = tensor([[1.0, nan, -2.0, inf, 3.0], [nan, nan, -inf, 0.0, -0.0]])
for shape, axis in LINES + LINES:
    full = shape[axis] > 0
    for reverse in (False, True):
        turn = (lambda t: t.flip(axis)) if reverse else (lambda t: t)
        add("cumsum", [real(*shape)], lambda t: turn(turn(t).cumsum(axis)), {"axis": axis, "reverse": reverse})
    add("cumprod", [real(*shape)], lambda t: t.cumprod(axis), {"axis": axis})
    add("logcumsumexp", [real(*shape)], lambda t: t.logcumsumexp(axis), {"axis": axis})
    add("cummax", [real(*shape)], lambda t: t.cummax(axis), {"axis": axis})
    add("cummin", [real(*shape)], lambda t: t.cummin(axis), {"axis": axis})
    for scale in (1.0, 30.0):
        x = real(*shape) * scale
        add("softmax", [x], lambda t: t.softmax(axis), {"axis": axis})
        add("log_softmax", [x], lambda t: t.log_softmax(axis), {"axis": axis})
    for descending in (False, True):
        how = {"axis": axis, "descending": descending}
        add("sort", [real(*shape)], lambda t: t.sort(dim=axis, descending=descending, stable=True), how)
        value("argsort", [real(*shape)], lambda t: t.argsort(dim=axis, descending=descending, stable=True), how)
    if not full:
        continue
    for keepdims in (False, True):
        how = {"axis": axis, "keepdims": keepdims}
        value("argmax", [real(*shape)], lambda t: t.argmax(axis, keepdim=keepdims), how)
        value("argmin", [real(*shape)], lambda t: t.argmin(axis, keepdim=keepdims), how)
        k = max(1, shape[axis] - 1)
        add("kthvalue", [real(*shape)], lambda t: t.kthvalue(k, axis, keepdims), {"k": k, **how})
    for largest in (False, True):
        add("top_k", [real(*shape)], lambda t: t.topk(k, axis, largest), {"k": k, "axis": axis, "largest": largest})
for points in (TIES, HOLES):
    value("sort", [points], lambda t: t.sort(stable=True))
    value("sort", [points], lambda t: t.sort(descending=True, stable=True), {"descending": True})
    value("argsort", [points], lambda t: t.argsort(stable=True))
    value("cumsum", [points], lambda t: t.cumsum(1), {"axis": 1})
    value("cumprod", [points], lambda t: t.cumprod(1), {"axis": 1})
    value("cummax", [points], lambda t: t.cummax(1), {"axis": 1})
    value("cummin", [points], lambda t: t.cummin(1), {"axis": 1})
    value("softmax", [points], lambda t: t.softmax(1), {"axis": 1})
    value("argmax", [points], lambda t: t.argmax(1), {"axis": 1})
    value("argmin", [points], lambda t: t.argmin(1), {"axis": 1})

for count, shape in [(1, ()), (4, ()), (4, (3,)), (4, (0,)), (0, (2,)), (3, (2, 2)), (1, (2, 1, 2))]:
    for right in (False, True):
        edges = real(count).sort()[0]
        value("searchsorted", [edges, real(*shape)],
              lambda s, t: torch.searchsorted(s, t, right=right), {"right": right})
        value("bucketize", [real(*shape), edges], lambda t, s: torch.bucketize(t, s, right=right), {"right": right})
        tied = tensor([-1.0, 0.5, 0.5, 0.5, 2.0])
        value("searchsorted", [tied, tied[1:]], lambda s, t: torch.searchsorted(s, t, right=right), {"right": right})
        value("bucketize", [tied[1:], tied], lambda t, s: torch.bucketize(t, s, right=right), {"right": right})
for length, count in [(1, 0), (1, 3), (4, 0), (4, 1), (4, 9), (7, 5), (7, 30), (2, 2), (3, 6), (9, 1)]:
    picks = whole(length, count)
    value("bincount", [picks], lambda t: t.bincount(minlength=length), {"length": length})
    add("bincount", [picks, real(count)], lambda t, w: torch.zeros(length, dtype=w.dtype).index_add(0, t, w),
        {"length": length})
for edges, shape in [(2, (4,)), (3, (4,)), (4, (0,)), (4, (1,)), (5, (2, 3)), (4, (2, 2, 2)), (6, (8,)), (9, (8,))]:
    bounds = real(edges).sort()[0]
    bins = lambda t, e: torch.tensor(numpy.histogram(t.numpy(), e.numpy())[0])
    for points in (real(*shape), real(*shape, low=-9.0, high=9.0)):
        value("histogram", [points, bounds], bins)
    value("histogram", [torch.cat([bounds, bounds]), bounds], bins)
for shape in [(), (3,), (2, 3), (0, 2), (2, 2, 2)]:
    for size in (0, 2, 4, 9):
        value("nonzero_static", [real(*shape).round()], lambda t: torch.nonzero_static(t, size=size, fill_value=-7),
              {"size": size, "fill_value": -7})

SLICES = [((2, 3), 0), ((2, 3), 1), ((3, 1), 0), ((1, 4), 1), ((2, 2, 3), 1), ((2, 3, 2), -1), ((1, 2, 2, 2), -3)]
for shape, axis in SLICES:
    for p in (1.0, 2.0, 3.0, inf):
        for maxnorm in (0.75, 3.0):
            add("renorm", [real(*shape)], lambda t: t.renorm(p, axis, maxnorm),
                {"p": p, "axis": axis, "maxnorm": maxnorm})
for shape, axis in [((0, 3), 0), ((0, 3), 1), ((2, 0, 2), 0)]:
    add("renorm", [real(*shape)], lambda t: t.renorm(2.0, axis, 0.5), {"axis": axis, "maxnorm": 0.5})
add("renorm", [real(2, 3)], lambda t: t.renorm(2.0, 0, 0.0), {"axis": 0, "maxnorm": 0.0})
value("renorm", [HOLES], lambda t: t.renorm(2.0, 1, 1.5), {"axis": 1, "maxnorm": 1.5})

finish(__file__)
