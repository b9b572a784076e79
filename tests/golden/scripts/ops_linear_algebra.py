"""Golden values of linear algebra, from PyTorch. Run it to make ops_linear_algebra.json again."""
import torch
from torch import linalg

from golden import case, write

g = torch.Generator().manual_seed(5)
cases = []


def randn(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=g)


def add(op, attributes, inputs, function):
    cases.append(case(op, attributes, inputs, function, g))


def mean(t):
    """What a symmetric matrix stands for in cholesky and eigh."""
    return (t + t.mT) / 2


def lu(t):
    p, l, u = linalg.lu(t)
    return l.tril(-1) + u, p.mT.argmax(-1), linalg.slogdet(t.detach())[0]


# The signs of eigenvectors and singular vectors differ between builds of LAPACK. Functions of the matrix have none.
def roots(t):
    u, s, vh = linalg.svd(t, full_matrices=False)
    return (u * s.sqrt().unsqueeze(-2)) @ vh


square = randn(2, 4, 4)
positive = square @ square.mT + torch.eye(4, dtype=torch.float64)
tall, wide, b = randn(2, 5, 3), randn(2, 3, 5), randn(2, 4, 3)
add("cholesky", {}, [positive], lambda t: linalg.cholesky(mean(t)))
for upper in (False, True):
    for unit in (False, True):
        add("triangular_solve", {"upper": upper, "unit_diagonal": unit}, [positive, b],
            lambda t, r: linalg.solve_triangular(t, r, upper=upper, unitriangular=unit))
add("lu", {}, [square], lu)
add("solve", {}, [square, b], linalg.solve)
add("inv", {}, [square], linalg.inv)
add("det", {}, [square], linalg.det)
add("slogdet", {}, [square], lambda t: (linalg.slogdet(t)[0].detach(), linalg.slogdet(t)[1]))
add("cholesky_solve", {}, [linalg.cholesky(positive), b], lambda l, r: torch.cholesky_solve(r, l.tril()))
for a in (square, tall, wide):
    if a is not wide:
        add("qr", {}, [a], lambda t: tuple(linalg.qr(t)))
    add("roots of singular values", {}, [a], roots)
    add("pinv", {}, [a], linalg.pinv)
    add("lstsq", {}, [a, randn(2, a.shape[1], 2)], lambda t, r: linalg.pinv(t) @ r)
    add("matrix_rank", {}, [a], linalg.matrix_rank)
    for name, order in [("fro", "fro"), ("nuc", "nuc"), ("1", 1), ("2", 2)]:
        add("matrix_norm", {"ord": name}, [a], lambda t: linalg.matrix_norm(t, order))
low = randn(4, 2) @ randn(2, 3)  # of rank 2
add("matrix_rank", {}, [low], linalg.matrix_rank)
add("exp of a symmetric matrix", {}, [positive / 4], lambda t: torch.matrix_exp(mean(t)))
for n in (-2, 0, 1, 5):
    add("matrix_power", {"n": n}, [square], lambda t: linalg.matrix_power(t, n) + 0 * t)
add("trace", {}, [tall], lambda t: t.diagonal(dim1=-2, dim2=-1).sum(-1))
add("outer", {}, [randn(3), randn(4)], torch.outer)
add("kron", {}, [randn(2, 3), randn(4, 2)], torch.kron)

write(cases, __file__)
