"""Golden values and gradients of the losses of sequences. CTC comes from PyTorch, whose gradient counts on log_probs
from log_softmax. For any log_probs, the loss is that of log_softmax(log_probs) minus the sum of their logsumexp over
the steps that count, so this script gives the gradient of the function itself. Conditional random fields come from sums
over all sequences of tags. Run it to make ops_sequences.json again."""
import itertools

import torch
from torch.nn import functional as F

from golden import case, twice, write

g = torch.Generator().manual_seed(11)
cases = []


def randn(*shape):
    return (torch.randn(shape, dtype=torch.float64, generator=g) * 4).round() / 4


def integers(values):
    return torch.tensor(values, dtype=torch.int64)


def reduced(losses, reduction):
    return losses.sum() if reduction == "sum" else losses.mean() if reduction == "mean" else losses


def ctc(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    single = log_probs.dim() == 2
    if single:
        log_probs, targets = log_probs[:, None], targets[None]
        input_lengths, target_lengths = input_lengths[None], target_lengths[None]
    losses = F.ctc_loss(log_probs.log_softmax(2), targets, input_lengths, target_lengths, blank, "none", zero_infinity)
    counted = torch.arange(len(log_probs))[:, None] < input_lengths
    totals = torch.where(counted, log_probs.logsumexp(2), 0).sum(0)
    if zero_infinity:  # without an alignment
        totals = torch.where(losses == 0, 0, totals)
    losses = losses - totals
    if reduction == "mean":
        losses = losses / target_lengths.clamp_min(1)
    return reduced(losses[0] if single else losses, reduction)


def add_ctc(log_probs, targets, input_lengths, target_lengths, **attributes):
    inputs = [log_probs, integers(targets), integers(input_lengths), integers(target_lengths)]
    normalised = [log_probs.log_softmax(-1), *inputs[1:]]
    theirs, ours = F.ctc_loss(*normalised, **attributes), ctc(*normalised, **attributes)
    assert torch.allclose(theirs, ours, rtol=1e-13, atol=1e-13), (theirs, ours)
    cases.append(case("ctc_loss", attributes, inputs, lambda *x: ctc(*x, **attributes), g))


targets = [[1, 2, 2, 3], [3, 1, 0, 0], [2, 3, 1, 2]]
for reduction in ("none", "mean", "sum"):
    add_ctc(randn(7, 3, 4), targets, [7, 4, 6], [4, 2, 3], reduction=reduction)
    add_ctc(randn(7, 3, 4), targets, [7, 4, 6], [4, 0, 3], reduction=reduction, blank=0)
    add_ctc(randn(6, 2, 3), [[1, 0, 1], [0, 0, 2]], [6, 5], [3, 2], reduction=reduction, blank=2)
    add_ctc(randn(5, 3, 4), [[1, 1, 1], [1, 2, 3], [1, 1, 0]], [5, 2, 3], [3, 3, 2], reduction=reduction,
            zero_infinity=True)  # the second has no alignment
    add_ctc(randn(5, 4), [3, 3, 1], 5, 3, reduction=reduction)
    add_ctc(randn(1, 2, 2), [[1], [0]], [1, 1], [1, 0], reduction=reduction)
    add_ctc(randn(3, 1, 5), [[1, 3]], [3], [2], reduction=reduction, blank=4)
add_ctc(randn(40, 2, 6), [[1, 5, 5, 2, 3, 4, 1, 1], [2, 4, 1, 3, 5, 0, 0, 0]], [40, 33], [8, 5])


def fields(emissions, transitions, mask=None, start=None, end=None):
    """For each sequence its steps, and a function that gives the score of tags of these."""
    b, t, n = emissions.shape
    for row in range(b):
        steps = [i for i in range(t) if mask is None or mask.dim() == 0 or mask[row, i]]

        def score(tags, steps=steps, row=row):
            if not steps:
                return emissions.new_zeros(())
            total = sum(emissions[row, step, tag] for step, tag in zip(steps, tags))
            total = total + sum(transitions[a, b] for a, b in zip(tags, tags[1:]))
            return total + (0 if start is None else start[tags[0]]) + (0 if end is None else end[tags[-1]])

        yield steps, score


def partition(emissions, transitions, *rest):
    n = emissions.shape[2]
    totals = []
    for steps, score in fields(emissions, transitions, *rest):
        scores = [score(tags) for tags in itertools.product(range(n), repeat=len(steps))]
        totals.append(torch.stack(scores).logsumexp(0))
    return torch.stack(totals)


def score(emissions, tags, transitions, *rest):
    return torch.stack([score([int(tags[row, i]) for i in steps])
                        for row, (steps, score) in enumerate(fields(emissions, transitions, *rest))])


def decode(emissions, transitions, *rest):
    n = emissions.shape[2]
    tags, scores = torch.zeros(emissions.shape[:2], dtype=torch.int64), []
    for row, (steps, score) in enumerate(fields(emissions, transitions, *rest)):
        best = max(itertools.product(range(n), repeat=len(steps)), key=lambda each: score(each).item())
        scores.append(score(best))
        for step, tag in zip(steps, best):
            tags[row, step] = tag
    return tags, torch.stack(scores)


def noise(*shape):  # without ties
    return torch.randn(shape, dtype=torch.float64, generator=g)


mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]], dtype=torch.bool)
for n in (1, 3):
    emissions, transitions, start, end = noise(4, 4, n), noise(n, n), noise(n), noise(n)
    tags = torch.randint(0, n, (4, 4), generator=g)
    for rest in ((), (mask,), (mask, start, end)):
        cases.append(twice("crf_log_partition", {}, [emissions, transitions, *rest], partition, g))
        cases.append(twice("crf_score", {}, [emissions, tags, transitions, *rest], score, g))
        for reduction in ("none", "mean", "sum"):
            cases.append(twice("crf_loss", {"reduction": reduction}, [emissions, tags, transitions, *rest],
                               lambda e, y, *x: reduced(partition(e, *x) - score(e, y, *x), reduction), g))
        cases.append(case("crf_decode", {}, [emissions, transitions, *rest], decode, g))

write(cases, __file__)
