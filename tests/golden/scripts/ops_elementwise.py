"""Golden values, first and second gradients of elementwise functions, from PyTorch. Run it to make
ops_elementwise.json again."""
import torch

from golden import twice, write

g = torch.Generator().manual_seed(2)
inf, nan = float("inf"), float("nan")
cases = []


def add(op, points, function=None, attributes=None):
    points = points if isinstance(points, tuple) else (points,)
    inputs = [torch.tensor(p, dtype=torch.bool if isinstance(p[0], bool) else torch.int64 if isinstance(p[0], int) else
                           torch.float64) for p in points]
    cases.append(twice(op, attributes or {}, inputs, function or getattr(torch, op), g))


numbers = [0.0, -0.0, 0.3, -0.7, 1.6, -2.4, 5.1, 1e-9, -1e-9]
ends = [inf, -inf, nan]
for op in ("round", "ceil", "trunc"):
    add(op, [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 4503599627370497.5, 1e300, -0.2, 3.0, -0.0] + ends)
add("tan", numbers + [100.0, 1e-300])
add("asin", [0.0, 0.3, -0.9, 0.9999, 1e-12, -0.5, 1.5, nan])
add("acos", [0.0, 0.3, -0.9, 0.9999, 1e-12, -0.5, 1.5, nan])
add("atan", numbers + [1e10] + ends)
add("sinh", numbers + [30.0, -30.0])
add("cosh", numbers + [30.0, -30.0])
add("asinh", numbers + [1e10, -1e10])
add("acosh", [1.001, 1.5, 2.0, 10.0, 1e6, 0.5, nan])
add("atanh", [0.0, 1e-10, 0.3, -0.9, 0.9999, 1.5, nan])
add("exp2", numbers + [50.5, -1000.0, -inf])
add("log2", [1e-3, 0.5, 1.0, 1.0000001, 7.0, 1e30, inf])
add("log10", [1e-3, 0.5, 1.0, 1.0000001, 7.0, 1e30, inf])
add("erfc", numbers + [10.0, 26.0, -6.0], torch.special.erfc)
add("erfinv", [0.0, 1e-10, 0.3, -0.5, 0.9, -0.99, 0.999, 1.5])
add("lgamma", [0.1, 0.5, 1.0, 1.5, 2.0, 10.0, 100.0, -0.5, -1.5, -2.7, 1e-5])
add("digamma", [0.1, 0.5, 1.0, 1.4616, 2.0, 10.0, 1e5, 1e-3])
for n in (1, 2, 3):
    add("polygamma", [0.3, 0.5, 1.0, 2.5, 10.0, 50.0], lambda x: torch.polygamma(n, x), {"n": n})
pairs = ([0.0, 1.0, -1.0, 2.5, -3.0, 1e-5, 4.0], [1.0, 0.0, -1.0, 0.5, -2.0, 1e5, -0.3])
add("atan2", pairs)
add("hypot", pairs)
add("lerp", (pairs[0], pairs[1], [0.0, 1.0, 0.3, 0.5, 0.7, -0.4, 1.8]))
for op in ("isnan", "isinf", "isfinite"):
    add(op, numbers + [1e308] + ends)
add("nan_to_num", numbers + ends)
add("nan_to_num", numbers + ends, lambda x: torch.nan_to_num(x, 1.5, 7, -8), {"nan": 1.5, "posinf": 7.0, "neginf": -8.0})
add("logical_xor", ([True, True, False, False], [True, False, True, False]))
whole = ([0, 1, -1, 12345, -98765, 2**51, -2**50, 7], [3, -1, 255, 65535, 77, 1, -1, 2**40])
for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    add(op, whole)
add("bitwise_not", whole[0])
for op in ("bitwise_left_shift", "bitwise_right_shift"):
    add(op, (whole[0], [0, 3, 5, 17, 2, 1, 40, 62]))

write(cases, __file__)
