"""Golden values of convolution, pooling and norms of channels, from PyTorch. Makes ops_convolution.json again."""
import torch
from torch.nn import functional as F

from golden import case, write

g = torch.Generator().manual_seed(3)
cases = []


def randn(*shape):
    return (torch.randn(shape, dtype=torch.float64, generator=g) * 64).round() / 64  # short numbers


def add(op, attributes, inputs, function):
    cases.append(case(op, attributes, inputs, function, g))


CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d}


def conv(x, weight, bias=True, **options):
    n = len(x) - 2
    inputs = [randn(*x), randn(*weight)] + ([randn(weight[0])] if bias else [])
    attributes = dict(options)
    if options.get("padding") == "same":
        del attributes["padding"]
        attributes["same"] = True
    add("conv", attributes, inputs, lambda *all: CONV[n](*all, **options))


def transpose(x, weight, bias=True, **options):
    n = len(x) - 2
    inputs = [randn(*x), randn(*weight)] + ([randn(weight[1] * options.get("groups", 1))] if bias else [])
    add("conv_transpose", options, inputs, lambda *all: TRANSPOSE[n](*all, **options))


conv((2, 3, 7), (4, 3, 3))
conv((2, 3, 7), (4, 3, 4), False, padding="same")
conv((1, 2, 9), (2, 2, 3), padding=2, stride=2, dilation=2)
conv((2, 4, 6), (4, 1, 3), groups=4, padding=1)
conv((2, 3, 5, 6), (4, 3, 3, 3), padding=1)
conv((2, 3, 5, 6), (4, 3, 2, 3), False, padding="same", dilation=[1, 2])
conv((2, 4, 6, 5), (6, 2, 3, 2), groups=2, stride=2)
conv((1, 3, 7, 6), (3, 1, 3, 3), groups=3, stride=[2, 1], padding=[2, 1])
conv((1, 2, 6, 7), (3, 2, 1, 1), stride=2)
conv((1, 2, 7, 8), (2, 2, 3, 2), dilation=2, padding=[1, 0], stride=[3, 2])
conv((1, 2, 3, 4, 3), (2, 2, 2, 2, 3), padding=1)
transpose((2, 3, 4), (3, 2, 3))
transpose((2, 3, 4), (3, 2, 3), stride=3, padding=1, output_padding=2)
transpose((2, 4, 3), (4, 1, 2), False, groups=4, stride=2)
transpose((1, 2, 3, 4), (2, 3, 3, 2), padding=[1, 0])
transpose((2, 4, 3, 2), (4, 3, 3, 3), groups=2, stride=2, padding=1, output_padding=1)
transpose((1, 2, 3, 3), (2, 2, 2, 3), stride=2, dilation=3, output_padding=[2, 1], padding=[1, 2])

x1, x2 = randn(1, 2, 9), randn(1, 2, 7, 8)
for options in ({"kernel_size": [3]}, {"kernel_size": [3], "stride": 2, "padding": 1},
                {"kernel_size": [2], "stride": 3, "ceil_mode": True}, {"kernel_size": [4], "stride": 2, "padding": 2,
                                                                      "ceil_mode": True}):
    add("avg_pool", options, [x1], lambda t: F.avg_pool1d(t, **options))
    add("avg_pool", {**options, "count_include_pad": False}, [x1],
        lambda t: F.avg_pool1d(t, count_include_pad=False, **options))
    for dilation in (1, 2):
        add("max_pool", {**options, "dilation": dilation}, [x1],
            lambda t: F.max_pool1d(t, dilation=dilation, **options))
for options in ({"kernel_size": [2, 2]}, {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0]},
                {"kernel_size": [3, 3], "stride": 2, "padding": 1, "ceil_mode": True}):
    add("avg_pool", options, [x2], lambda t: F.avg_pool2d(t, **options))
    add("avg_pool", {**options, "count_include_pad": False}, [x2],
        lambda t: F.avg_pool2d(t, count_include_pad=False, **options))
    add("max_pool", options, [x2], lambda t: F.max_pool2d(t, **options))
    add("max_pool", options, [(x2 * 2).round()], lambda t: F.max_pool2d(t, **options))  # equal elements
for size in (1, 3, 4, 11):
    add("adaptive_avg_pool", {"output_size": [size]}, [x1], lambda t: F.adaptive_avg_pool1d(t, size))
    add("adaptive_max_pool", {"output_size": [size]}, [x1], lambda t: F.adaptive_max_pool1d(t, size))
for size in ([1, 1], [3, 4], [7, 3]):
    add("adaptive_avg_pool", {"output_size": size}, [x2], lambda t: F.adaptive_avg_pool2d(t, size))
    add("adaptive_max_pool", {"output_size": size}, [(x2 * 2).round()], lambda t: F.adaptive_max_pool2d(t, size))

x = randn(2, 4, 3) + 1
image = randn(2, 4, 1, 3)
weight, bias, mean, variance = 1 + randn(4), randn(4), randn(4), randn(4).square() + 0.1
for more in ([], [weight], [weight, bias]):
    for groups in (1, 2, 4):
        add("group_norm", {"groups": groups, "epsilon": 1e-3}, [x, *more],
            lambda t, *wb: F.group_norm(t, groups, *wb, eps=1e-3))
    add("instance_norm", {"epsilon": 1e-5}, [image, *more],
        lambda t, *wb: F.instance_norm(t, None, None, *wb))
    add("batch_norm", {"epsilon": 1e-5}, [image, mean, variance, *more], lambda t, m, v, *wb:
        (t - m.view(4, 1, 1)) * (v.view(4, 1, 1) + 1e-5).rsqrt() * (wb[0].view(4, 1, 1) if wb else 1) +
        (wb[1].view(4, 1, 1) if len(wb) > 1 else 0))
    add("batch_norm_training", {"epsilon": 1e-5}, [image, *more], lambda t, *wb:
        (F.batch_norm(t, None, None, *wb, training=True), t.mean((0, 2, 3)), t.var((0, 2, 3), unbiased=True)))

write(cases, __file__)
