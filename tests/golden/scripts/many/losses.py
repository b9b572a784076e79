"""Golden values, first and second gradients of losses and norms, from PyTorch. Makes losses.json again."""
import torch
from torch.nn import functional as F

from cases import add, finish, real, value, whole

SHAPES = [((3,), (3,)), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((2, 1, 2), (2, 1, 2)), ((1, 2, 1, 2), (1, 2, 1, 2)),
          ((4, 1), (4, 1))]


def each(op, function, targets=None, kinds=({},), more=lambda shape: [], fixed=(), inputs=None):
    """function(input, target, *more, reduction, **kind) for every reduction."""
    for reduction in ("none", "mean", "sum"):
        for kind in kinds:
            for shape, other in SHAPES:
                first = inputs(shape) if inputs else real(*shape)
                second = targets(other) if targets else real(*other)
                add(op, [first, second, *more(shape)], lambda *t: function(*t, reduction=reduction, **kind),
                    {"reduction": reduction, **kind}, fixed)


def shares(shape):
    return real(*shape, low=0.05, high=0.95)


def signs(shape):
    return whole(2, *shape).double() * 2 - 1


each("mse_loss", F.mse_loss)
each("l1_loss", F.l1_loss)
each("huber_loss", F.huber_loss, kinds=({"delta": 1.0}, {"delta": 0.5}))
each("smooth_l1_loss", F.smooth_l1_loss, kinds=({"beta": 1.0}, {"beta": 0.5}))
each("kl_div", F.kl_div, shares)
each("kl_div", F.kl_div, kinds=({"log_target": True},))
each("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, shares)
each("binary_cross_entropy_with_logits", lambda a, b, w, p, reduction:
     F.binary_cross_entropy_with_logits(a, b, weight=w, pos_weight=p, reduction=reduction), shares,
     more=lambda shape: [shares(shape), real(*shape[-1:], low=0.5, high=3.0)], fixed=(2, 3))
each("hinge_embedding_loss", F.hinge_embedding_loss, signs, ({"margin": 1.0}, {"margin": 2.5}), fixed=(1,))
each("margin_ranking_loss", lambda a, b, t, reduction, margin: F.margin_ranking_loss(a, b, t, margin, reduction=reduction),
     kinds=({"margin": 0.0}, {"margin": 0.3}), more=lambda shape: [signs(shape)], fixed=(2,))
each("gaussian_nll_loss", lambda a, b, v, reduction, full: F.gaussian_nll_loss(a, b, v, full=full, reduction=reduction),
     kinds=({"full": False}, {"full": True}), more=lambda shape: [real(*shape, low=0.3, high=3.0)])
for log_input in (True, False):
    each("poisson_nll_loss", F.poisson_nll_loss, lambda shape: real(*shape, low=1.5, high=9.0),
         ({"log_input": log_input}, {"log_input": log_input, "full": True}), inputs=None if log_input else shares,
         fixed=(1,))
for shape in [(2, 3), (1, 4), (3, 1), (2, 2, 3)]:
    for reduction in ("none", "mean", "sum"):
        for p, swap in ((2.0, False), (1.0, False), (2.0, True)):
            kind = {"p": p, "swap": swap, "margin": 2.0, "reduction": reduction}
            add("triplet_margin_loss", [real(*shape), real(*shape), real(*shape)],
                lambda *t: F.triplet_margin_loss(*t, **kind), kind)
for shape, axis in [((2, 3), 1), ((2, 3), 0), ((3,), 0), ((2, 2, 3), 1), ((2, 2, 3), -1), ((1, 4), 1), ((0, 3), 1),
                    ((2, 3, 2), 0), ((3, 1), 1), ((2, 1, 2, 2), 2)]:
    for _ in range(2):
        add("cosine_similarity", [real(*shape), real(*shape)], lambda a, b: F.cosine_similarity(a, b, axis), {"axis": axis})
for shape in [(2, 3), (1, 4), (4, 2), (2, 3, 2), (1, 2, 2, 2)]:
    targets = whole(shape[1], shape[0], *shape[2:])
    hidden = targets.clone()
    hidden.flatten()[0] = -100
    for reduction in ("none", "mean", "sum"):
        for labels in (targets, hidden) if hidden.numel() > 1 else (targets,):
            for weights in ([], [real(shape[1], low=0.2, high=2.0)]):
                add("nll_loss", [real(*shape), labels, *weights],
                    lambda a, t, *w: F.nll_loss(a, t, *w, reduction=reduction), {"reduction": reduction}, (2,))
                for smoothing in (0.0, 0.2):
                    add("cross_entropy_loss", [real(*shape), labels, *weights],
                        lambda a, t, *w: F.cross_entropy(a, t, *w, reduction=reduction, label_smoothing=smoothing),
                        {"reduction": reduction, "label_smoothing": smoothing}, (2,))
for shape in [(3,), (1, 4), (2, 3), (4, 2), (2, 2, 3), (2, 1, 2), (0, 3)]:
    for ignore, smoothing in ((-100, 0.0), (-100, 0.1), (1, 0.0)):
        labels = whole(shape[-1], *shape[:-1])

        def summed(logits, classes):
            total = F.cross_entropy(logits.reshape(-1, shape[-1]), classes.reshape(-1), ignore_index=ignore,
                                    label_smoothing=smoothing, reduction="sum")
            return total, (classes != ignore).sum()
        add("cross_entropy", [real(*shape), labels], summed, {"ignore": ignore, "label_smoothing": smoothing})

for shape in [(4,), (2, 3), (1, 5), (2, 2, 3), (0, 3), (2, 1, 2), (3, 2)]:
    weight, bias = real(shape[-1], low=0.5, high=1.5), real(shape[-1])
    for epsilon in (1e-5, 1e-2):
        for more in ([], [weight], [weight, bias]):
            add("layer_norm", [real(*shape), *more], lambda t, *wb: F.layer_norm(t, shape[-1:], *wb, eps=epsilon),
                {"epsilon": epsilon})
        rms = lambda t: t * (t.square().mean(-1, keepdim=True) + epsilon).rsqrt()
        add("rms_norm", [real(*shape)], rms, {"epsilon": epsilon})
        add("rms_norm", [real(*shape), weight], lambda t, w: rms(t) * w, {"epsilon": epsilon})
for shape in [(2, 4, 3), (1, 4, 2), (2, 4), (1, 4, 2, 2), (2, 4, 1, 2)]:
    weight, bias = real(4, low=0.5, high=1.5), real(4)
    for more in ([], [weight], [weight, bias]):
        for groups in (1, 2):
            add("group_norm", [real(*shape), *more], lambda t, *wb: F.group_norm(t, groups, *wb, eps=1e-3),
                {"groups": groups, "epsilon": 1e-3})
        spread = lambda t, like: t.reshape(-1, *[1] * (like.dim() - 2))
        mean, variance = real(4), real(4, low=0.2, high=2.0)
        for epsilon in (1e-5, 1e-2):
            add("batch_norm", [real(*shape), mean, variance, *more], lambda t, m, v, *wb:
                (t - spread(m, t)) * (spread(v, t) + epsilon).rsqrt() * (spread(wb[0], t) if wb else 1) +
                (spread(wb[1], t) if len(wb) > 1 else 0), {"epsilon": epsilon})
            axes = tuple(a for a in range(len(shape)) if a != 1)
            if torch.zeros(shape).numel() > 4:
                add("batch_norm_training", [real(*shape), *more], lambda t, *wb:
                    (F.batch_norm(t, None, None, *wb, training=True, eps=epsilon), t.mean(axes),
                     t.var(axes, unbiased=True)), {"epsilon": epsilon})
        if len(shape) > 2:
            for epsilon in (1e-5, 1e-2):
                add("instance_norm", [real(*shape), *more],
                    lambda t, *wb: F.instance_norm(t, None, None, *wb, eps=epsilon), {"epsilon": epsilon})
finish(__file__)
