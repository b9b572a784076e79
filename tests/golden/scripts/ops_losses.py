"""Golden values, first and second gradients of losses, from PyTorch. Run it to make ops_losses.json again."""
import torch
from torch.nn import functional as F

from golden import twice, write

g = torch.Generator().manual_seed(5)
inf = float("inf")
cases = []


def tensor(points):
    flat = points
    while isinstance(flat, list):
        flat = flat[0]
    return torch.tensor(points, dtype=torch.int64 if isinstance(flat, int) else torch.float64)


def add(op, inputs, function, attributes=None, fixed=()):
    cases.append(twice(op, attributes or {}, [tensor(p) for p in inputs], function, g, fixed))


x = [[0.5, -1.25, 2.0], [1.5, 0.25, -2.5]]
y = [[0.25, 1.0, -1.0], [0.0, 3.0, -2.25]]
shares = [[0.25, 0.5, 0.25], [0.0, 0.125, 0.875]]
signs = [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]]
for reduction in ("none", "mean", "sum"):
    r = {"reduction": reduction}
    add("mse_loss", (x, y), lambda a, b: F.mse_loss(a, b, **r), r)
    add("l1_loss", (x, y), lambda a, b: F.l1_loss(a, b, **r), r)
    for delta in (1.0, 0.5):
        add("huber_loss", (x, y), lambda a, b: F.huber_loss(a, b, delta=delta, **r), {**r, "delta": delta})
        add("smooth_l1_loss", (x, y), lambda a, b: F.smooth_l1_loss(a, b, beta=delta, **r), {**r, "beta": delta})
    add("kl_div", (x, [[0.25, 0.5, 0.25], [0.5, 0.125, 0.875]]), lambda a, b: F.kl_div(a, b, **r), r)
    add("kl_div", (x, y), lambda a, b: F.kl_div(a, b, log_target=True, **r), {**r, "log_target": True})
    logits = [[0.5, -1.25, 2.0], [50.0, -800.0, 0.0]]
    add("binary_cross_entropy_with_logits", (logits, shares),
        lambda a, b: F.binary_cross_entropy_with_logits(a, b, **r), r)
    add("binary_cross_entropy_with_logits", (logits, shares, [[0.5], [2.0]], [1.0, 3.0, 0.5]),
        lambda a, b, w, p: F.binary_cross_entropy_with_logits(a, b, weight=w, pos_weight=p, **r), r, (2, 3))
    add("hinge_embedding_loss", (x, signs), lambda a, b: F.hinge_embedding_loss(a, b, **r), r, (1,))
    add("margin_ranking_loss", (x, y, signs), lambda a, b, t: F.margin_ranking_loss(a, b, t, margin=0.3, **r),
        {**r, "margin": 0.3})
    for full in (False, True):
        add("gaussian_nll_loss", (x, y, [[0.5, 1e-9, 2.0], [1.0, 0.25, 3.0]]),
            lambda a, b, v: F.gaussian_nll_loss(a, b, v, full=full, **r), {**r, "full": full})
        add("poisson_nll_loss", (x, [[0.5, 1.0, 2.0], [5.0, 30.0, 0.25]]),
            lambda a, b: F.poisson_nll_loss(a, b, full=full, **r), {**r, "full": full})
    add("poisson_nll_loss", (shares, y), lambda a, b: F.poisson_nll_loss(a, b, log_input=False, **r),
        {**r, "log_input": False})
    far = [[1.0, -0.5, 0.5], [-2.0, 0.75, 1.25]]
    for p, swap in ((2.0, False), (1.0, False), (2.0, True)):
        add("triplet_margin_loss", (x, y, far), lambda a, b, c: F.triplet_margin_loss(a, b, c, p=p, swap=swap, **r),
            {**r, "p": p, "swap": swap})
    weight = [0.5, 2.0, 1.25]
    deep = [[x[0], x[1], y[0]], [y[1], x[1], x[0]]]
    for inputs in ((x, [2, 0]), (x, [2, -100]), (x[0], 1), (deep, [[0, 1, -100], [2, 2, 0]])):
        for weights in ([], [weight]):
            add("nll_loss", (*inputs, *weights), lambda a, t, *w: F.nll_loss(a, t, w[0] if w else None, **r), r, (2,))
            for smoothing in (0.0, 0.2):
                add("cross_entropy_loss", (*inputs, *weights),
                    lambda a, t, *w: F.cross_entropy(a, t, w[0] if w else None, label_smoothing=smoothing, **r),
                    {**r, "label_smoothing": smoothing}, (2,))
add("kl_div", (x, y), lambda a, b: F.kl_div(a, b, log_target=True, reduction="batchmean"),
    {"log_target": True, "reduction": "batchmean"})
for axis in (0, 1):
    add("cosine_similarity", (x, y), lambda a, b: F.cosine_similarity(a, b, axis), {"axis": axis})

write(cases, __file__)
