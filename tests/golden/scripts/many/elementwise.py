"""Golden values, first and second gradients of elementwise ops, from PyTorch. Makes elementwise.json again."""
import math

import torch
from torch.nn import functional as F

from cases import PAIRS, SHAPES, add, finish, inf, nan, real, tensor, value, whole

TINY = [1e-9, -1e-9, 1e-300, -1e-300]


def unary(op, function=None, low=-3.0, high=3.0, points=(0.0, -0.0), far=(), attributes=None):
    """`points` have gradients; of what is `far` out of [low, high] or not finite, the value is compared."""
    function = function or getattr(torch, op)
    for shape in SHAPES:
        add(op, [real(*shape, low=low, high=high)], function, attributes)
    width = (high - low) / 6
    for i in range(6):
        add(op, [real(3, low=low + i * width, high=low + (i + 1) * width)], function, attributes)
    for each in points:
        add(op, [[each]], function, attributes)
    ends = [inf, -inf] if op == "sign" else [inf, -inf, nan]  # PyTorch's sign of NaN is 0; here it is NaN, as in NumPy
    for some in (ends, TINY, [1e10, -1e10], [*far, 1.0, -1.0]):
        value(op, [some], function, attributes)


for op in ("abs", "neg", "square", "sin", "cos", "tanh", "sigmoid", "erf", "atan", "asinh", "sinh", "cosh", "expm1"):
    unary(op)
unary("exp", far=[709.0, 710.0, -745.0, -746.0])
unary("exp2", far=[1023.5, 1024.0, -1074.0, -1080.0])
unary("tan", low=-1.5, high=1.5)
for op in ("asin", "acos", "atanh"):
    unary(op, low=-0.96, high=0.96, far=[1.0, -1.0, 1.5])
unary("acosh", low=1.05, high=9.0, points=(1.5, 100.0), far=[1.0, 0.5])
unary("sqrt", low=0.05, high=9.0, points=(1.0, 4.0), far=[0.0, -0.0])
unary("rsqrt", low=0.05, high=9.0, points=(1.0, 4.0), far=[0.0])
for op in ("log", "log2", "log10"):
    unary(op, low=0.05, high=9.0, points=(1.0, 100.0), far=[0.0])
unary("log1p", low=-0.9, high=9.0, far=[-1.0, -2.0])


class Polygamma(torch.autograd.Function):
    """By Hurwitz's zeta function, because PyTorch's own trigamma has eight digits. x > 0."""
    @staticmethod
    def forward(context, n, x):
        context.save_for_backward(x)
        context.n = n
        return (-1) ** (n + 1) * math.factorial(n) * torch.special.zeta(torch.tensor(n + 1.0, dtype=x.dtype), x)

    @staticmethod
    def backward(context, dy):
        return None, dy * Polygamma.apply(context.n + 1, *context.saved_tensors)


def with_derivative(function, derivative):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(context, dy):
            return dy * derivative(*context.saved_tensors)
    return Function.apply


digamma = with_derivative(torch.digamma, lambda x: Polygamma.apply(1, x))
lgamma = with_derivative(torch.lgamma, digamma)

unary("lgamma", lgamma, 0.1, 9.0, points=(1.0, 30.0), far=[0.0, -1.5, 200.0])
unary("digamma", digamma, 0.1, 9.0, points=(1.0, 30.0), far=[200.0])
for n in (1, 2):
    for shape in SHAPES + SHAPES:
        add("polygamma", [real(*shape, low=0.2, high=9.0)], lambda t: Polygamma.apply(n, t), {"n": n})
for a, b in PAIRS:  # PyTorch has no gradient by the first
    add("gammainc", [real(*a, low=0.2, high=9.0), real(*b, low=0.1, high=9.0)], torch.special.gammainc, fixed=(0,))
unary("erfc", torch.special.erfc, far=[27.0, -6.0])
unary("erfinv", low=-0.95, high=0.95, far=[1.0, -1.0, 1.5])
for op in ("floor", "ceil", "trunc", "round", "sign"):
    unary(op, far=[0.5, 1.5, 2.5, -0.5, -1.5, 2.0**52 - 0.5])
for op in ("isnan", "isinf", "isfinite"):
    unary(op)
unary("nan_to_num", far=[inf, nan])
unary("relu", points=(0.25, -0.25), far=[0.0])
unary("silu", F.silu)
unary("softplus", lambda t: F.softplus(t, threshold=1000), far=[30.0, -30.0])
for approximate in ("none", "tanh"):
    unary("gelu", lambda t: F.gelu(t, approximate=approximate), attributes={"approximate": approximate})
# PyTorch's own second derivatives differ at the points where a piece begins, so these stay apart.
for op, function in [("elu", F.elu), ("selu", F.selu), ("celu", F.celu), ("relu6", F.relu6), ("mish", F.mish),
                     ("leaky_relu", F.leaky_relu), ("hardswish", F.hardswish), ("softsign", F.softsign),
                     ("hardsigmoid", lambda t: F.relu6(t + 3) / 6), ("log_sigmoid", F.logsigmoid),
                     ("tanhshrink", F.tanhshrink), ("hardshrink", F.hardshrink), ("softshrink", F.softshrink),
                     ("hardtanh", F.hardtanh)]:
    unary(op, function, -5.0, 7.0, (0.75, -0.75))
unary("threshold", lambda t: F.threshold(t, 0.5, -1.5), points=(0.75, -0.75),
      attributes={"threshold": 0.5, "value": -1.5})
unary("clip", lambda t: t.clamp(-0.5, 1.25), points=(0.75, -0.75), attributes={"low": -0.5, "high": 1.25})
for to, dtype in [("int64", torch.int64), ("int32", torch.int32), ("bool", torch.bool), ("float32", torch.float32)]:
    for shape in SHAPES[:6]:
        value("cast", [real(*shape)], lambda t: t.to(dtype), {"dtype": to})


def binary(op, function=None, low=-3.0, high=3.0, more=(), fixed=()):
    function = function or getattr(torch, op)
    for a, b in PAIRS:
        add(op, [real(*a, low=low, high=high), real(*b, low=low, high=high)], function, fixed=fixed)
    for a, b in more:
        value(op, [a, b], function)
    ends = tensor([inf, -inf, nan, 1.0, 0.0, -0.0])
    for number in (2.0, -0.5, 0.0, inf):
        value(op, [ends, tensor(number)], function)
        value(op, [tensor(number), ends], function)


for op in ("add", "sub", "mul", "div", "maximum", "minimum", "hypot", "atan2"):
    binary(op)
binary("pow", low=0.1, more=[([-2.0, -2.0, -2.0, 0.0, 0.0], [2.0, 3.0, 0.5, 0.0, -1.0])])
binary("mod", torch.remainder, 0.3, more=[([5.5, -5.5, 5.5, -5.5], [2.0, 2.0, -2.0, -2.0])])
binary("floor_divide", torch.floor_divide, 0.3, fixed=(0, 1))
for op in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    binary(op, getattr(torch, {"equal": "eq", "not_equal": "ne"}.get(op, op)))
for op in ("logical_and", "logical_or", "logical_xor"):
    for a, b in PAIRS + PAIRS[:6]:
        value(op, [whole(2, *a).bool(), whole(2, *b).bool()], getattr(torch, op))
for shape in SHAPES * 2:
    value("logical_not", [whole(2, *shape).bool()], torch.logical_not)
    value("bitwise_not", [whole(2**40, *shape, low=-2**40)], torch.bitwise_not)
for op in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
    high = 20 if "shift" in op else 2**40
    for a, b in PAIRS + PAIRS[:6]:
        value(op, [whole(2**40, *a, low=-2**40), whole(high, *b)], getattr(torch, op))
for op in ("add", "sub", "mul", "maximum", "minimum", "floor_divide", "mod"):
    for a, b in PAIRS[:5]:
        function = {"mod": torch.remainder}.get(op) or getattr(torch, op)
        value(op, [whole(9, *a, low=-9), whole(9, *b, low=1)], function)
for a, b in PAIRS + PAIRS[:6]:
    add("lerp", [real(*a), real(*b), real(*b, low=0.0, high=1.0)], torch.lerp)
    add("where", [whole(2, *a).bool(), real(*a), real(*b)], torch.where)
    if torch.broadcast_shapes(a, b) == a:
        add("masked_fill", [real(*a), whole(2, *b).bool()], lambda t, m: t.masked_fill(m, -2.5), {"value": -2.5})
        value("masked_fill", [whole(9, *a), whole(2, *b).bool()], lambda t, m: t.masked_fill(m, 7), {"value": 7})
for channels in (1, 3):
    for shape in [(channels,), (2, channels), (0, channels), (1, channels, 2), (2, channels, 0), (2, channels, 1, 2)]:
        add("prelu", [real(*shape), real(channels)] if len(shape) > 1 else [real(*shape), real(1)], F.prelu)
        add("prelu", [real(*shape), real(1)], F.prelu)
for shape, axis in [((4,), 0), ((2, 4), -1), ((4, 2), 0), ((2, 2, 3), 1), ((0, 2), 1), ((2, 0), 1), ((1, 1, 6), 2)]:
    for scale in (1.0, 3.0, 8.0):
        add("glu", [real(*shape, low=-scale, high=scale)], lambda t: F.glu(t, axis), {"axis": axis})

finish(__file__)
