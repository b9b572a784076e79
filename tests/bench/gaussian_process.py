"""The computation of gaussian_process.cpp with PyTorch. usage: gaussian_process.py [POINTS] [THREADS]"""
import math
import sys
import time

import torch

n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
torch.set_num_threads(threads)
x = 10.0 * torch.arange(n, dtype=torch.float64) / n
y = torch.sin(x) + 0.1 * torch.cos(37.0 * torch.arange(n, dtype=torch.float64))


def play():
    parameters = torch.tensor([0.0, 0.0, -2.0], dtype=torch.float64, requires_grad=True)
    scale, variance, noise = parameters.exp()
    distances = ((x[:, None] - x[None]) / scale).square()
    k = variance * torch.exp(-0.5 * distances) + noise * torch.eye(n, dtype=torch.float64)
    l = torch.linalg.cholesky(k)
    whitened = torch.linalg.solve_triangular(l, y[:, None], upper=False)
    likelihood = (-0.5 * whitened.square().sum() - l.diagonal().log().sum() - 0.5 * n * math.log(2 * math.pi))
    likelihood.backward()
    return likelihood.item(), parameters.grad


best = math.inf
for _ in range(10):
    begin = time.perf_counter()
    likelihood, gradient = play()
    best = min(best, time.perf_counter() - begin)
print(f"PyTorch, {n} points, {threads} threads: {best * 1e3:.1f} ms; log likelihood {likelihood:.6f}, gradient "
      + " ".join(f"{g:.6f}" for g in gradient))
