"""Golden values of updates by torch.optim.LBFGS on Rosenbrock's function of several variables: makes lbfgs.json.

Loss: sum over i of 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2, for x of six elements that starts at -1.2, 1, -1.2, …. Each case has
the options, and the loss before and x after each update. Needs torch; the tests do not."""
import json
import os

import torch


def run(updates, **options):
    x = torch.tensor([-1.2, 1.0] * 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], **options)

    def closure():
        optimizer.zero_grad()
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    losses, after = [], []
    for _ in range(updates):
        losses.append(optimizer.step(closure).item())
        after.append(x.detach().tolist())
    return {"losses": losses, "after": after}


cases = [
    ({"iterations": 4, "history": 3, "strong_wolfe": True},
     run(12, max_iter=4, history_size=3, line_search_fn="strong_wolfe")),
    ({"iterations": 20, "history": 100, "strong_wolfe": True, "rate": 0.5},
     run(4, lr=0.5, line_search_fn="strong_wolfe")),
    ({"iterations": 3, "history": 5, "strong_wolfe": False, "rate": 0.1},
     run(100, lr=0.1, max_iter=3, history_size=5)),
    ({"iterations": 1, "plays": 6, "history": 10, "strong_wolfe": True},
     run(30, max_iter=1, max_eval=6, history_size=10, line_search_fn="strong_wolfe")),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/lbfgs.json"), "w") as file:
    json.dump([{"options": options, **result} for options, result in cases], file)
