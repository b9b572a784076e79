"""Golden values, first and second gradients of convolution, pooling and windows, from PyTorch. Makes windows.json again."""
import torch
from torch.nn import functional as F

from cases import add, finish, real

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d}
AVERAGE, MAX = {1: F.avg_pool1d, 2: F.avg_pool2d}, {1: F.max_pool1d, 2: F.max_pool2d}


def conv(x, weight, bias=True, **options):
    n = len(x) - 2
    inputs = [real(*x), real(*weight)] + ([real(weight[0])] if bias else [])
    attributes = dict(options)
    if options.get("padding") == "same":
        del attributes["padding"]
        attributes["same"] = True
    add("conv", inputs, lambda *all: CONV[n](*all, **options), attributes)


def transpose(x, weight, bias=True, **options):
    n = len(x) - 2
    inputs = [real(*x), real(*weight)] + ([real(weight[1] * options.get("groups", 1))] if bias else [])
    add("conv_transpose", inputs, lambda *all: TRANSPOSE[n](*all, **options), options)


for bias in (False, True):
    conv((1, 1, 3), (1, 1, 1), bias)
    conv((1, 2, 4), (2, 2, 3), bias)
    conv((2, 1, 4), (1, 1, 2), bias, stride=2)
    conv((1, 2, 5), (2, 1, 3), bias, groups=2, padding=1)
    conv((1, 1, 5), (2, 1, 2), bias, dilation=3)
    conv((1, 1, 4), (1, 1, 3), bias, padding="same")
    conv((0, 1, 4), (1, 1, 3), bias)
    conv((1, 1, 3, 3), (1, 1, 2, 2), bias)
    conv((1, 2, 3, 2), (1, 2, 3, 1), bias, padding=[1, 0])
    conv((1, 2, 3, 3), (2, 1, 2, 2), bias, groups=2, stride=[2, 1])
    conv((1, 1, 4, 4), (1, 1, 2, 2), bias, dilation=[2, 1], stride=2)
    conv((1, 1, 2, 2, 2), (1, 1, 2, 1, 2), bias)
    transpose((1, 1, 3), (1, 1, 1), bias)
    transpose((1, 2, 3), (2, 2, 3), bias)
    transpose((2, 1, 2), (1, 2, 2), bias, stride=2)
    transpose((1, 2, 3), (2, 1, 2), bias, groups=2, padding=1)
    transpose((1, 1, 2), (1, 1, 2), bias, stride=3, output_padding=2)
    transpose((1, 1, 3), (1, 1, 2), bias, dilation=2)
    transpose((0, 1, 3), (1, 1, 2), bias)
    transpose((1, 1, 2, 2), (1, 1, 2, 2), bias)
    transpose((1, 2, 2, 2), (2, 1, 2, 1), bias, stride=[2, 1])
    transpose((1, 1, 2, 3), (1, 2, 2, 2), bias, padding=[1, 0], stride=2, output_padding=[1, 0])
for shape in [(1, 1, 4), (1, 2, 5), (2, 1, 6), (0, 1, 4), (1, 1, 3, 4), (1, 2, 4, 3)]:
    n = len(shape) - 2
    for options in ({"kernel_size": [2] * n}, {"kernel_size": [3] * n}, {"kernel_size": [2] * n, "stride": [1] * n},
                    {"kernel_size": [3] * n, "stride": [2] * n, "padding": [1] * n},
                    {"kernel_size": [2] * n, "stride": [2] * n, "ceil_mode": True}):
        add("avg_pool", [real(*shape)], lambda t: AVERAGE[n](t, **options), options)
        add("max_pool", [real(*shape)], lambda t: MAX[n](t, **options), options)
    add("avg_pool", [real(*shape)], lambda t: AVERAGE[n](t, [2] * n, padding=[1] * n, count_include_pad=False),
        {"kernel_size": [2] * n, "padding": [1] * n, "count_include_pad": False})
    add("max_pool", [real(*shape)], lambda t: MAX[n](t, [2] * n, stride=1, dilation=2),
        {"kernel_size": [2] * n, "stride": [1] * n, "dilation": [2] * n})
for size in (1, 2, 3, 5):
    for shape in [(1, 1, 4), (1, 2, 5), (2, 1, 3)]:
        add("adaptive_avg_pool", [real(*shape)], lambda t: F.adaptive_avg_pool1d(t, size), {"output_size": [size]})
        add("adaptive_max_pool", [real(*shape)], lambda t: F.adaptive_max_pool1d(t, size), {"output_size": [size]})
for size in ([1, 1], [2, 1], [2, 3], [3, 3]):
    for shape in [(1, 1, 3, 4), (1, 2, 3, 2)]:
        add("adaptive_avg_pool", [real(*shape)], lambda t: F.adaptive_avg_pool2d(t, size), {"output_size": size})
        add("adaptive_max_pool", [real(*shape)], lambda t: F.adaptive_max_pool2d(t, size), {"output_size": size})


def fold(t, axis, length, size, stride, dilation):
    """The sum of windows, element by element; those of a window stand last."""
    y = torch.zeros(*t.shape[:axis], length, *t.shape[axis + 1:-1], dtype=t.dtype)
    for window in range(t.shape[axis]):
        for k in range(size):
            at = [slice(None)] * y.dim()
            at[axis] = window * stride + k * dilation
            place = torch.zeros_like(y)
            place[tuple(at)] = 1
            y = y + place * t[..., k].narrow(axis, window, 1)
    return y


for shape, axis, size, stride, dilation in [
        ((4,), 0, 2, 1, 1), ((5,), 0, 3, 2, 1), ((5,), 0, 2, 1, 3), ((6,), 0, 2, 2, 2), ((1,), 0, 1, 1, 1),
        ((2, 4), 1, 2, 1, 1), ((4, 2), 0, 3, 1, 1), ((2, 5), 1, 2, 3, 1), ((2, 5), 1, 3, 1, 2), ((0, 3), 1, 2, 1, 1),
        ((3, 0), 0, 2, 1, 1), ((2, 4, 2), 1, 2, 2, 1), ((1, 4, 2), 1, 4, 1, 1), ((4, 1, 2), 0, 2, 1, 2),
        ((2, 2, 4), 2, 2, 1, 1), ((3, 3), 0, 1, 2, 1), ((3, 3), 1, 2, 1, 1), ((7,), 0, 3, 4, 1), ((7,), 0, 3, 1, 3),
        ((1, 1, 3), 2, 2, 1, 1)]:
    span = (size - 1) * dilation + 1
    how = {"axis": axis, "stride": stride, "dilation": dilation}

    def windows(t):
        return t.unfold(axis, span, stride)[..., ::dilation]
    x = real(*shape)
    add("windows", [x], windows, {**how, "size": size})
    add("fold", [real(*windows(x).shape)], lambda t: fold(t, axis, shape[axis], size, stride, dilation),
        {**how, "length": shape[axis]})

finish(__file__)
