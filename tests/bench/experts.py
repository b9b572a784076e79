"""The computation of experts.cpp with PyTorch. usage: experts.py [TOKENS] [WIDTH] [EXPERT_WIDTH] [THREADS]"""
import math
import sys
import time

import torch
import torch.nn.functional as F

tokens, width, hidden, threads = (int(a) for a in (sys.argv[1:] + ["512", "512", "1024", "2"][len(sys.argv) - 1:]))
experts, used = 16, 4
torch.set_num_threads(threads)


def waves(shape, step):
    return (0.1 * torch.sin(step * torch.arange(math.prod(shape), dtype=torch.float64))).float().reshape(shape)


x = (100 * waves((tokens, width), 0.37)).requires_grad_()
router, gate, up, down = (waves(s, 0.71 + i).requires_grad_() for i, s in enumerate(
    [(width, experts), (experts, width, hidden), (experts, width, hidden), (experts, hidden, width)]))


def routed():
    share, chosen = (x @ router).softmax(-1).topk(used)
    return share / share.sum(-1, keepdim=True), chosen


def loop():
    share, chosen = routed()
    y = torch.zeros_like(x)
    for e in range(experts):
        rows, place = torch.where(chosen == e)
        if len(rows) == 0:
            continue
        own = x[rows]
        h = F.silu(own @ gate[e]) * (own @ up[e])
        y = y.index_add(0, rows, (h @ down[e]) * share[rows, place, None])
    return y


def grouped():
    share, chosen = routed()
    ids = chosen.flatten()
    order = ids.argsort(stable=True)
    ends = torch.bincount(ids, minlength=experts).cumsum(0).int()
    rows = order // used
    own = x[rows]
    h = F.silu(torch._grouped_mm(own, gate, ends)) * torch._grouped_mm(own, up, ends)
    y = torch._grouped_mm(h, down, ends) * share.flatten()[order, None]
    return torch.zeros_like(x).index_add(0, rows, y)


for name, function in [("loop", loop), ("grouped", grouped)]:
    def step():
        loss = function().square().sum()
        return loss, torch.autograd.grad(loss, [x, router, gate, up, down])
    try:
        loss, gradients = step()
    except (RuntimeError, AttributeError) as error:
        print(f"PyTorch, {name}: {str(error).splitlines()[0]}")
        continue
    best, end = 1e9, time.time() + 2
    while time.time() < end:
        begin = time.time()
        step()
        best = min(best, time.time() - begin)
    print(f"PyTorch, {name}: {best * 1e3:.1f} ms; loss {loss:.6f}, gradients {gradients[0].flatten()[7]:.6f} "
          f"{gradients[2].flatten()[7]:.6f}")
