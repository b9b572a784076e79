"""Golden values, first and second gradients of products and linear algebra, from PyTorch. Makes products.json again."""
import torch
from torch import linalg

from cases import add, finish, real, value, whole

for equation, shapes in [("ij,jk->ik", [(3, 4), (4, 2)]), ("ij,kj->ik", [(3, 4), (2, 4)]), ("ji,jk->ik", [(4, 3), (4, 2)]),
                         ("bij,bjk->bik", [(2, 3, 2), (2, 2, 3)]), ("bij,jk->bik", [(2, 3, 2), (2, 3)]),
                         ("bhqd,bhkd->bhqk", [(1, 2, 3, 2), (1, 2, 2, 2)]), ("i,j->ij", [(3,), (2,)]),
                         ("i,i->", [(3,), (3,)]), ("ij,ij->ij", [(2, 3), (2, 3)]), ("ij,ij->", [(2, 3), (2, 3)]),
                         ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("ij->j", [(2, 3)]), ("ii->", [(3, 3)]),
                         ("bii->bi", [(2, 3, 3)]), ("...i,ij->...j", [(2, 2, 3), (3, 2)]), ("...ij->...ji", [(2, 2, 3)]),
                         ("i...,i...->...", [(2, 3), (2, 3)]), ("ab,bc,cd->ad", [(2, 3), (3, 2), (2, 2)]),
                         ("ij,j->i", [(3, 4), (4,)]), (",i->i", [(), (3,)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
                         ("ij,jk->ik", [(0, 2), (2, 3)]), ("ab,cb,ad->cd", [(2, 3), (2, 3), (2, 2)])]:
    add("einsum", [real(*s) for s in shapes], lambda *t: torch.einsum(equation, *t), {"equation": equation})
for a, b in [((3, 4), (4, 2)), ((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((1, 1), (1, 1)), ((1, 4), (4, 1)),
             ((4, 1), (1, 4)), ((2, 3, 2), (2,)), ((2,), (3, 2, 2)), ((2, 3, 2), (2, 2)), ((3, 2), (2, 2, 2)),
             ((2, 2, 3), (2, 3, 2)), ((2, 1, 2, 3), (2, 3, 1)), ((2, 1, 1, 2), (3, 2, 2)), ((1, 2, 3), (2, 3, 1)),
             ((0, 2), (2, 3)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((0, 2, 2), (2, 1)), ((0,), (0,))]:
    add("matmul", [real(*a), real(*b)], torch.matmul)
for heads, length, width, keys in [(1, 1, 1, 1), (1, 2, 3, 2), (2, 3, 2, 4), (1, 3, 1, 1), (3, 1, 2, 3), (2, 2, 2, 0)]:
    for scale in (1.0, 0.25):
        for masked in (False, True):
            def attention(q, k, v, *mask):
                scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * scale
                if mask:
                    scores = scores.masked_fill(mask[0], -torch.inf)
                return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
            hidden = whole(2, heads, length, keys).bool()
            hidden[..., :1] = False
            add("attention", [real(2, length, heads, width), real(2, keys, heads, width), real(2, keys, heads, width),
                              *[hidden][:masked]], attention,
                {"scores": "bqhd,bkhd->bhqk", "outputs": "bhqk,bkhd->bqhd", "scale": scale})
for a, b in [((1,), (1,)), ((3,), (4,)), ((4,), (3,)), ((2,), (2,)), ((0,), (2,)), ((2,), (0,)), ((1,), (5,)), ((5,), (1,)),
             ((3,), (2,)), ((2,), (3,))] * 2:
    add("outer", [real(*a), real(*b)], torch.outer)
for a, b in [((1, 1), (1, 1)), ((2, 3), (3, 2)), ((2, 2), (2, 2)), ((1, 3), (2, 1)), ((3, 1), (1, 2)), ((2, 1), (2, 1)),
             ((0, 2), (2, 2)), ((2, 3), (1, 1)), ((1, 1), (2, 3)), ((1, 2), (3, 2))] * 2:
    add("kron", [real(*a), real(*b)], torch.kron)


def mean(t):
    """What a symmetric matrix stands for in cholesky and eigh."""
    return (t + t.mT) / 2


def good(*shape):
    """Square matrices far from singular."""
    return real(*shape) + 5 * torch.eye(shape[-1], dtype=torch.float64)


def positive(*shape):
    t = real(*shape, low=-1.0, high=1.0)
    return t @ t.mT + torch.eye(shape[-1], dtype=torch.float64)


SQUARES = [(1, 1), (2, 2), (3, 3), (4, 4), (0, 0), (1, 2, 2), (2, 2, 2), (2, 3, 3), (0, 2, 2), (2, 1, 2, 2)]
for shape in SQUARES + SQUARES:
    add("cholesky", [positive(*shape)], lambda t: linalg.cholesky(mean(t)))
    add("inv", [good(*shape)], linalg.inv)
    add("det", [good(*shape)], linalg.det)
    add("slogdet", [good(*shape)], lambda t: (linalg.slogdet(t)[0].detach(), linalg.slogdet(t)[1]))
    add("trace", [real(*shape)], lambda t: t.diagonal(dim1=-2, dim2=-1).sum(-1))
    for columns in (1, 3):
        b = real(*shape[:-1], columns)
        add("solve", [good(*shape), b], linalg.solve)
        add("cholesky_solve", [linalg.cholesky(positive(*shape)), b], lambda l, r: torch.cholesky_solve(r, l.tril()))
    for n in (0, 1, 2, 3, -1, -2):
        if len(shape) < 4:
            add("matrix_power", [good(*shape)], lambda t: linalg.matrix_power(t, n) + 0 * t, {"n": n})
for shape in SQUARES:
    for upper in (False, True):
        for unit in (False, True):
            add("triangular_solve", [good(*shape), real(*shape[:-1], 2)],
                lambda t, r: linalg.solve_triangular(t, r, upper=upper, unitriangular=unit),
                {"upper": upper, "unit_diagonal": unit})

    def lu(t):
        p, l, u = linalg.lu(t)
        return l.tril(-1) + u, p.mT.argmax(-1), linalg.slogdet(t.detach())[0]
    if shape[-1]:
        for _ in range(3):
            add("lu", [real(*shape)], lu)
TALL = [(1, 1), (2, 1), (3, 2), (2, 2), (4, 3), (2, 3, 2), (1, 3, 3), (2, 4, 2), (0, 3, 2), (3, 1)]
for shape in TALL + TALL:
    add("qr", [real(*shape)], lambda t: tuple(linalg.qr(t)))
    add("pinv", [real(*shape)], lambda t: linalg.inv(t.mT @ t) @ t.mT)
    add("lstsq", [real(*shape), real(*shape[:-1], 2)], lambda t, r: linalg.solve(t.mT @ t, t.mT @ r))
    low = real(*shape[:-1], 1) @ real(*shape[:-2], 1, shape[-1])
    value("matrix_rank", [real(*shape)], linalg.matrix_rank)
    value("matrix_rank", [low], linalg.matrix_rank)
    for name, order in [("fro", "fro"), ("1", 1), ("2", 2), ("nuc", "nuc")]:
        add("matrix_norm", [real(*shape)], lambda t: linalg.matrix_norm(t, order), {"ord": name})
for rows, k, n, sizes in [(4, 2, 3, [2, 2]), (5, 3, 2, [0, 5]), (5, 2, 2, [3, 0, 1]), (0, 2, 3, [0, 0]), (3, 1, 1, [3]),
                          (6, 2, 1, [1, 2, 3]), (3, 0, 2, [1, 2]), (2, 2, 0, [1, 1]), (4, 1, 3, [0, 0, 0]), (9, 2, 2, [9, 0])] * 2:
    ends = torch.tensor(sizes).cumsum(0).tolist()
    spans = [slice(e - s, e) for e, s in zip(ends, sizes)]
    add("ragged_dot", [real(rows, k), real(len(sizes), k, n), torch.tensor(sizes)],
        lambda t, w, s: torch.cat([t[i] @ w[j] for j, i in enumerate(spans)] + [0 * t[ends[-1]:, :1].sum(-1, True).expand(-1, n)]))
    add("ragged_dot_weights", [real(rows, k), real(rows, n), torch.tensor(sizes)],
        lambda t, y, s: torch.stack([t[i].mT @ y[i] for i in spans]))

finish(__file__)
