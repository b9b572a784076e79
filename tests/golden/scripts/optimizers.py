"""Golden values of ten updates by PyTorch's optimisers: makes optimizers.json.

Each case has the optimiser's options as ours are named, the gradients of every update (the same for all cases), and the
weights after every update. Weights: "matrix" (3, 5) and "vector" (5,). Needs torch; the tests do not."""
import json
import os

import torch

from golden import array

g = torch.Generator().manual_seed(3)
randn = lambda *shape: torch.randn(shape, dtype=torch.float64, generator=g)
start = [randn(3, 5), randn(5)]
gradients = [[randn(3, 5), randn(5) * (10 if step == 4 else 1)] for step in range(10)]
RATE = 0.05


def run(make, clip):
    weights = [t.clone().requires_grad_() for t in start]
    optimizer = make(weights)
    after = []
    for given in gradients:
        for weight, gradient in zip(weights, given):
            weight.grad = gradient.clone()
        if clip:
            torch.nn.utils.clip_grad_norm_(weights, clip)
        optimizer.step()
        after.append([array(weight) for weight in weights])
    return after


# Ours decays arrays of two axes only, unless told otherwise.
decay_matrix = lambda w, decay: [{"params": [w[0]], "weight_decay": decay}, {"params": [w[1]], "weight_decay": 0}]
O = torch.optim
cases = [
    ({"kind": "sgd"}, lambda w: O.SGD(w, RATE)),
    ({"kind": "sgd", "momentum": 0.9}, lambda w: O.SGD(w, RATE, momentum=0.9)),
    ({"kind": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "decay_all": True},
     lambda w: O.SGD(w, RATE, momentum=0.9, nesterov=True, weight_decay=0.1)),
    ({"kind": "adam"}, lambda w: O.Adam(w, RATE)),
    ({"kind": "adam", "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.1},
     lambda w: O.Adam(decay_matrix(w, 0.1), RATE, betas=(0.8, 0.95), eps=1e-3)),
    ({"kind": "adamw", "weight_decay": 0.1}, lambda w: O.AdamW(decay_matrix(w, 0.1), RATE)),
    ({"kind": "adamw", "weight_decay": 0.1, "decay_all": True}, lambda w: O.AdamW(w, RATE, weight_decay=0.1)),
    ({"kind": "adamw", "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "clip": 1.0},
     lambda w: O.AdamW(decay_matrix(w, 0.1), RATE, betas=(0.9, 0.99))),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/optimizers.json"), "w") as file:
    json.dump({"rate": RATE, "start": [array(t) for t in start],
               "gradients": [[array(t) for t in step] for step in gradients],
               "cases": [{"options": options, "after": run(make, options.get("clip", 0))} for options, make in cases]},
              file)
