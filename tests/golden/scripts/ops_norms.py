"""Golden values of softmax, normalisation and cross-entropy, from PyTorch. Run it to make ops_norms.json again."""
import torch
from torch.nn import functional as F

from golden import case, write

g = torch.Generator().manual_seed(2)


def randn(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=g)


cases = []


def add(op, attributes, inputs, function):
    cases.append(case(op, attributes, inputs, function, g))


x = randn(2, 3, 5) * 3
for axis in (0, 1, 2, -1):
    add("softmax", {"axis": axis}, [x], lambda t: t.softmax(axis))
    add("log_softmax", {"axis": axis}, [x], lambda t: t.log_softmax(axis))
hidden = x.clone()
hidden[:, :, 1:3] = float("-inf")
add("softmax", {"axis": -1}, [hidden], lambda t: t.softmax(-1))

for epsilon in (1e-6, 1e-5, 1e-3, 1.0):
    for count in (0, 1, 2):
        more = [1 + randn(5), randn(5)][:count]
        add("layer_norm", {"epsilon": epsilon}, [x + 2, *more], lambda t, *wb: F.layer_norm(t, (5,), *wb, eps=epsilon))
    rms = lambda t: t * (t.square().mean(-1, keepdim=True) + epsilon).rsqrt()
    add("rms_norm", {"epsilon": epsilon}, [x], rms)
    add("rms_norm", {"epsilon": epsilon}, [x, 1 + randn(5)], lambda t, w: rms(t) * w)
add("layer_norm", {"epsilon": 1e-5}, [randn(5), randn(5)], lambda t, w: F.layer_norm(t, (5,), w))

targets = torch.tensor([[0, 4, 2], [1, 4, 3]])


def cross_entropy(ignore, smoothing):
    def of(logits, classes):
        total = F.cross_entropy(logits.reshape(-1, 5), classes.reshape(-1).long(), ignore_index=ignore,
                                label_smoothing=smoothing, reduction="sum")
        return total, (classes != ignore).sum()
    return of


for ignore in (-100, 4, -1):
    for smoothing in (0.0, 0.1, 1.0):
        classes = targets if ignore != -1 else torch.tensor([[0, -1, 2], [-1, -1, 3]], dtype=torch.int32)
        add("cross_entropy", {"ignore": ignore, "label_smoothing": smoothing}, [x, classes],
            cross_entropy(ignore, smoothing))
add("cross_entropy", {"ignore": -100, "label_smoothing": 0.0}, [x[0, 0], torch.tensor(3)], cross_entropy(-100, 0.0))


def without_padding(logits, classes):  # nothing of what is spread goes to class 0
    spread = torch.full((5,), 0.3 / 4, dtype=torch.float64)
    spread[0] = 0
    wanted = 0.7 * F.one_hot(classes, 5).double() + spread
    losses = -(wanted * logits.log_softmax(-1)).sum(-1)
    return losses[classes != 0].sum(), (classes != 0).sum()


add("cross_entropy", {"ignore": 0, "label_smoothing": 0.3, "smoothing_excludes": 0}, [x, targets], without_padding)

write(cases, __file__)
