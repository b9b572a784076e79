"""The computation of graph.cpp with PyTorch. usage: graph.py [NODES] [EDGES] [THREADS]"""
import math
import resource
import sys
import time

import torch

nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 10007
edges = int(sys.argv[2]) if len(sys.argv) > 2 else 100000
threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
torch.set_num_threads(threads)
FEATURES, HIDDEN, CLASSES = 64, 64, 16
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def waves(shape, step):
    return (0.1 * torch.sin(step * torch.arange(math.prod(shape), dtype=torch.float64))).float().reshape(shape)


def ends(count, high, factor):
    return torch.arange(count) * factor % high


senders, receivers = ends(edges, nodes, 7919), ends(edges, nodes, 104729)
x, labels = waves((nodes, FEATURES), 0.37), ends(nodes, CLASSES, 31)
shapes = [(FEATURES, HIDDEN), (FEATURES, HIDDEN), (HIDDEN, CLASSES), (HIDDEN, CLASSES)]
weights = [waves(shape, 0.71 + i).requires_grad_() for i, shape in enumerate(shapes)]
counts = torch.zeros(nodes, 1).index_add_(0, receivers, torch.ones(edges, 1)).clamp(min=1)


def layer(h, own, sent):
    messages = torch.zeros(nodes, h.shape[1]).index_add_(0, receivers, h[senders]) / counts
    return h @ own + messages @ sent


def step():
    logits = layer(layer(x, *weights[:2]).relu(), *weights[2:])
    loss = torch.nn.functional.cross_entropy(logits, labels)
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        return loss.item(), [w - 0.1 * g for w, g in zip(weights, gradients)]


best = math.inf
for _ in range(20):
    begin = time.perf_counter()
    loss, new = step()
    best = min(best, time.perf_counter() - begin)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"PyTorch, {nodes} nodes, {edges} edges, {threads} threads: {best * 1e3:.1f} ms, "
      f"{(memory - before) / 1024:.0f} MB more than before; loss {loss:.6f}, a new weight {new[0].flatten()[7]:.6f}")
