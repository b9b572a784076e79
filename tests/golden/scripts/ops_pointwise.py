"""Golden values of elementwise ops and reductions, from PyTorch. Run it to make ops_pointwise.json again."""
import torch
from torch.nn import functional as F

from golden import case, write

g = torch.Generator().manual_seed(1)


def randn(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=g)


cases = []


def add(op, attributes, inputs, function):
    cases.append(case(op, attributes, inputs, function, g))


x = randn(2, 2, 3)
for approximate in ("none", "tanh"):
    add("gelu", {"approximate": approximate}, [randn(3, 5) * 3], lambda t: F.gelu(t, approximate=approximate))
# Not at the bounds: there, versions of PyTorch differ in the gradient.
add("clip", {"low": -0.5, "high": 0.75}, [torch.tensor([-2, -0.4, 0.1, 0.7, 3], dtype=torch.float64)],
    lambda t: t.clamp(-0.5, 0.75))
add("masked_fill", {"value": -2.5}, [x, torch.rand(2, 3, generator=g) < 0.5], lambda t, m: t.masked_fill(m, -2.5))
add("cast", {"dtype": "int64"}, [torch.tensor([-1.7, -0.2, 0.9, 3.0], dtype=torch.float64)], lambda t: t.long())

# Functions of one variable at ordinary and at delicate points, with PyTorch's gradients there.
points = torch.tensor([-30, -3, -1, -0.25, 0, 1e-3, 0.5, 2, 40], dtype=torch.float64)
for name, function in [("exp", torch.exp), ("expm1", torch.expm1), ("sin", torch.sin), ("cos", torch.cos),
                       ("tanh", torch.tanh), ("erf", torch.erf), ("sigmoid", torch.sigmoid), ("relu", torch.relu),
                       ("silu", F.silu), ("softplus", lambda t: F.softplus(t, threshold=1000)), ("abs", torch.abs),
                       ("square", torch.square), ("neg", torch.neg)]:
    add(name, {}, [points[:-1] if name in ("exp", "expm1", "square") else points], function)
for name, function in [("sqrt", torch.sqrt), ("rsqrt", torch.rsqrt), ("log", torch.log), ("log1p", torch.log1p)]:
    add(name, {}, [torch.tensor([1e-3, 0.5, 1, 7, 1000], dtype=torch.float64)], function)

# Functions of two variables, broadcasting, with ties and zeros.
a = torch.tensor([[1.5, 0, -2], [3, 2, 0.5]], dtype=torch.float64)
b = torch.tensor([1.5, 2, -1], dtype=torch.float64)
for name, function in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
                       ("maximum", torch.maximum), ("minimum", torch.minimum), ("mod", torch.remainder)]:
    add(name, {}, [a, b], function)
add("pow", {}, [a.abs(), torch.tensor([0, 2.5, 3], dtype=torch.float64)], torch.pow)

for axis in ([0], [1], [2], [-1], [0, 2], [1, 2], [0, 1], []):
    for keepdims in (False, True):
        attributes = {"axis": axis, "keepdims": keepdims}
        axes = tuple(axis) if axis else (0, 1, 2)
        add("sum", attributes, [x], lambda t: t.sum(axes, keepdim=keepdims))
        add("mean", attributes, [x], lambda t: t.mean(axes, keepdim=keepdims))
        add("logsumexp", attributes, [x], lambda t: t.logsumexp(axes, keepdim=keepdims))
        tied = (x * 2).round()  # PyTorch's amax also shares ties equally
        add("max", attributes, [tied], lambda t: t.amax(axes, keepdim=keepdims))
        add("min", attributes, [tied], lambda t: t.amin(axes, keepdim=keepdims))
        for correction in (0, 1):
            if keepdims or correction:
                add("var", {**attributes, "correction": correction}, [x],
                    lambda t: t.var(axes, correction=correction, keepdim=keepdims))
mask = torch.rand(2, 2, 3, generator=g) < 0.7
for axis in (0, 1, -1):
    for keepdims in (False, True):
        add("any", {"axis": [axis], "keepdims": keepdims}, [mask], lambda t: t.any(axis, keepdim=keepdims))
        add("all", {"axis": [axis], "keepdims": keepdims}, [mask], lambda t: t.all(axis, keepdim=keepdims))
        add("argmax", {"axis": axis, "keepdims": keepdims}, [x], lambda t: t.argmax(axis, keepdim=keepdims))
    add("cumsum", {"axis": axis, "reverse": False}, [x], lambda t: t.cumsum(axis))
    add("cumsum", {"axis": axis, "reverse": True}, [x], lambda t: t.flip(axis).cumsum(axis).flip(axis))
for k in (1, 3):
    add("top_k", {"k": k}, [x], lambda t: t.topk(k))
add("full", {"shape": [2, 3], "value": 1.5, "dtype": "float32"}, [], lambda: torch.full((2, 3), 1.5))
add("eye", {"rows": 2, "columns": 3, "dtype": "float32"}, [], lambda: torch.eye(2, 3))

write(cases, __file__)
