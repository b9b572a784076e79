"""Golden values of shape, product and indexing ops, from PyTorch. Run it to make ops_shape.json again."""
import torch
from torch.nn import functional as F

from golden import case, write

g = torch.Generator().manual_seed(3)
cases = []


def randn(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=g)


def add(op, attributes, inputs, function):
    cases.append(case(op, attributes, inputs, function, g))


x = randn(2, 3, 4)
add("reshape", {"shape": [4, -1]}, [x], lambda t: t.reshape(4, -1))
add("broadcast_to", {"shape": [2, 3, 4]}, [randn(3, 1)], lambda t: t.broadcast_to(2, 3, 4))
for axes in ([2, 0, 1], [0, 2, 1]):
    add("transpose", {"axes": axes}, [x], lambda t: t.permute(axes))
for axis in (0, 1, -1):
    add("expand_dims", {"axis": axis}, [x], lambda t: t.unsqueeze(axis))
    add("concat", {"axis": axis}, [x, x * 2], lambda a, b: torch.cat([a, b], axis))
    add("stack", {"axis": axis}, [x, x + 1], lambda a, b: torch.stack([a, b], axis))
    add("unstack", {"axis": axis}, [x], lambda t: t.unbind(axis))
    add("flip", {"axis": [axis]}, [x], lambda t: t.flip(axis))
    add("cumsum", {"axis": axis}, [x], lambda t: t.cumsum(axis))
add("split", {"sizes": [1, 3], "axis": 2}, [x], lambda t: t.split([1, 3], 2))
add("squeeze", {"axis": [1]}, [randn(2, 1, 3)], lambda t: t.squeeze(1))
add("tile", {"repeats": [2, 1, 3]}, [x], lambda t: t.tile(2, 1, 3))
add("slice", {"start": [0, 1, 0], "stop": [2, 3, 4], "step": [1, 1, 2]}, [x], lambda t: t[0:2, 1:3, 0:4:2])
add("pad", {"before": [0, 1, 2], "after": [1, 0, 0], "value": 1.5}, [x], lambda t: F.pad(t, (2, 0, 1, 0, 0, 1), value=1.5))
for diagonal in (-1, 0, 1):
    add("tril", {"diagonal": diagonal}, [x], lambda t: t.tril(diagonal))
    add("triu", {"diagonal": diagonal}, [x], lambda t: t.triu(diagonal))
add("diag_embed", {}, [randn(2, 3)], torch.diag_embed)

for equation, shapes in [("ij,jk->ik", [(3, 4), (4, 2)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
                         ("i,j->ij", [(3,), (2,)]), ("ij,ij->", [(2, 3), (2, 3)]), ("bii->bi", [(2, 3, 3)]),
                         ("ii->", [(3, 3)]), ("...i,ij->...j", [(2, 3, 4), (4, 2)]), ("ijk->kj", [(2, 3, 4)]),
                         ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)])]:
    add("einsum", {"equation": equation}, [randn(*s) for s in shapes], lambda *t: torch.einsum(equation, *t))
for a, b in [((3, 4), (4, 2)), ((4,), (4,)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 2))]:
    add("matmul", {}, [randn(*a), randn(*b)], torch.matmul)

index = torch.tensor([2, 0, 2])
for axis in (0, 1):
    y = randn(3, 3)
    add("take", {"axis": axis}, [y, index], lambda t, i: t.index_select(axis, i))
    add("index_add", {"axis": axis}, [y, index, randn(3, 3)], lambda t, i, p: t.index_add(axis, i, p))
    chosen = torch.tensor([[0, 2, 1], [1, 1, 0], [2, 2, 2]])
    add("gather", {"axis": axis}, [y, chosen], lambda t, i: t.gather(axis, i))
    add("scatter_add", {"axis": axis}, [y, chosen, randn(3, 3)], lambda t, i, p: t.scatter_add(axis, i, p))
add("one_hot", {"classes": 4}, [index], lambda i: F.one_hot(i, 4).float())

write(cases, __file__)
