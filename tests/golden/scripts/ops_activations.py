"""Golden values, first and second gradients of activation functions, from PyTorch. Run it to make
ops_activations.json again."""
import torch
from torch.nn import functional as F

from golden import twice, write

g = torch.Generator().manual_seed(3)
inf, nan = float("inf"), float("nan")
cases = []
# Without the points at which versions of PyTorch differ in the gradient: the bounds of clips.
numbers = [0.0, -0.0, 0.3, -0.2, 0.7, -0.8, 1.6, -2.4, 5.1, 7.0, -4.5, 1e-9, -1e-9, 40.0, -40.0, 800.0]


def add(op, function, points=numbers, attributes=None):
    points = points if isinstance(points, tuple) else (points,)
    cases.append(twice(op, attributes or {}, [torch.tensor(p, dtype=torch.float64) for p in points], function, g))


ends = [inf, nan]
# At 0, PyTorch has other second derivatives of elu and its kin; and it rounds their alpha to float32.
smooth = numbers[2:]
add("elu", F.elu, smooth + ends)
add("elu", lambda x: F.elu(x, 1.75), smooth, {"alpha": 1.75})
add("selu", F.selu, smooth + ends)
add("celu", F.celu, smooth + ends)
add("celu", lambda x: F.celu(x, 0.625), smooth, {"alpha": 0.625})
add("leaky_relu", F.leaky_relu, numbers + ends)
add("leaky_relu", lambda x: F.leaky_relu(x, 0.3), attributes={"negative_slope": 0.3})
add("hardswish", F.hardswish)
add("hardsigmoid", lambda x: F.relu6(x + 3) / 6)  # PyTorch has no second derivative of its own op
add("hardtanh", F.hardtanh)
add("hardtanh", lambda x: F.hardtanh(x, -0.5, 2.5), attributes={"min_val": -0.5, "max_val": 2.5})
add("relu6", F.relu6, numbers[2:])
add("mish", F.mish, numbers[:-1])
add("softsign", F.softsign)
add("log_sigmoid", F.logsigmoid, numbers + [-1e300])
add("tanhshrink", F.tanhshrink)
add("hardshrink", F.hardshrink)
add("hardshrink", lambda x: F.hardshrink(x, 1.2), attributes={"lambd": 1.2})
add("softshrink", F.softshrink)
add("softshrink", lambda x: F.softshrink(x, 1.2), attributes={"lambd": 1.2})
add("threshold", lambda x: F.threshold(x, 0.5, -1.5), attributes={"threshold": 0.5, "value": -1.5})
two = [[0.3, -1.0, 2.0, -0.4], [-1.5, 0.6, -0.1, 1.1]]
add("prelu", F.prelu, ([[0.3, -1.0], [-2.0, 0.4]], [0.25, -0.5]))
add("prelu", F.prelu, ([[[0.3, -1.0, -3.0], [-2.0, 0.4, 0.9]]], [0.25, -0.5]))
add("prelu", F.prelu, ([0.3, -1.0], [0.25]))
add("glu", F.glu, two)
add("glu", lambda x: F.glu(x, 0), two, {"axis": 0})

write(cases, __file__)
