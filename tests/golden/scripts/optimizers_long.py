"""Golden values of 100 updates by PyTorch, optax and bitsandbytes: makes optimizers_long.json.

Gradients depend on the weights, so that differences add up: element i of a weight has the gradient
(0.5 + 0.2 (i mod 5)) w_i + 0.3 cos(0.7 i + 1.3 update), where updates count from 0. Start: w_i = sin(1.1 i + k) for weight
number k. Each case has the options, as ours are named, and some elements of the weights after some updates. PyTorch's Muon
orthogonalises in bfloat16, which would hide the arithmetic, so it is made to do so in float64. There is no 8-bit Adam for
CPUs in bitsandbytes, so NumPy computes it with its map of codes. Needs torch, jax, optax, bitsandbytes; the tests do not."""
import json
import os

import jax
import numpy as np
import optax
import torch
from bitsandbytes.functional import create_dynamic_map

jax.config.update("jax_enable_x64", True)
RATE, AFTER = 0.01, (1, 2, 10, 50, 100)
SHAPES = {"wide": (6, 11), "tall": (12, 5), "vector": (9,), "images": (3, 4, 5)}
LARGE = {"large": (67, 71), "vector": (9,)}  # 4757 elements: the last block of 256 is not full


def start(shapes):
    return [np.sin(1.1 * np.arange(np.prod(shape)) + k).reshape(shape) for k, shape in enumerate(shapes.values())]


def gradient(weight, update):
    i = np.arange(weight.size)
    return ((0.5 + 0.2 * (i % 5)) * weight.ravel() + 0.3 * np.cos(0.7 * i + 1.3 * update)).reshape(weight.shape)


def kept(weights):
    return [weight.ravel()[::37 if weight.size > 1000 else 1].tolist() for weight in weights]


def by_torch(make):
    weights = [torch.tensor(w, requires_grad=True) for w in start(SHAPES)]
    optimizers = make(weights)
    after = []
    for update in range(max(AFTER)):
        for weight in weights:
            weight.grad = torch.tensor(gradient(weight.detach().numpy(), update))
        for optimizer in optimizers:
            optimizer.step()
        if update + 1 in AFTER:
            after.append(kept([weight.detach().numpy() for weight in weights]))
    return after


def by_optax(method):
    weights = [jax.numpy.asarray(w) for w in start(SHAPES)]
    state = method.init(weights)
    after = []
    for update in range(max(AFTER)):
        changes, state = method.update([jax.numpy.asarray(gradient(np.asarray(w), update)) for w in weights], state, weights)
        weights = optax.apply_updates(weights, changes)
        if update + 1 in AFTER:
            after.append(kept([np.asarray(w) for w in weights]))
    return after


class Codes:
    """Moments as codes of blocks of 256."""

    def __init__(self, count, signed):
        self.map = create_dynamic_map(signed).numpy().astype(np.float64)
        self.middles = (self.map[:-1] + self.map[1:]) / 2
        self.count, self.values = count, np.zeros(count)

    def assign(self, values):
        for begin in range(0, self.count, 256):
            block = values[begin:begin + 256]
            scale = float(np.float32(np.abs(block).max()))
            self.values[begin:begin + 256] = self.map[np.searchsorted(self.middles, block / scale)] * scale


def adam_8bit(beta1, beta2, epsilon, decay, decoupled):
    weights = start(LARGE)
    moments = [[Codes(w.size, signed) if w.size >= 4096 else np.zeros(w.size) for signed in (True, False)] for w in weights]
    after = []
    for update in range(1, max(AFTER) + 1):
        for k, weight in enumerate(weights):
            g, w = gradient(weight, update - 1).ravel(), weight.ravel()
            decays = decay if weight.ndim > 1 else 0
            if not decoupled:
                g = g + decays * w
            m, v = [each.values if isinstance(each, Codes) else each for each in moments[k]]
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            if decoupled:
                w = w * (1 - RATE * decays)
            w = w - RATE * (m / (1 - beta1**update)) / (np.sqrt(v / (1 - beta2**update)) + epsilon)
            weights[k] = w.reshape(weight.shape)
            for number, value in enumerate((m, v)):
                if isinstance(moments[k][number], Codes):
                    moments[k][number].assign(value)
                else:
                    moments[k][number] = value
        if update in AFTER:
            after.append(kept(weights))
    return after


O = torch.optim
# Ours decays arrays of two axes and more only.
split = lambda w, decay: [{"params": [x for x in w if x.ndim > 1], "weight_decay": decay},
                          {"params": [x for x in w if x.ndim < 2], "weight_decay": 0}]
matrices = lambda w: [x for x in w if x.ndim == 2]
others = lambda w, decay: [{"params": [x for x in w if x.ndim > 2], "weight_decay": decay},
                           {"params": [x for x in w if x.ndim < 2], "weight_decay": 0}]
mask = [True, True, False, True]
torch.bfloat16 = torch.float64
cases = [
    ({"kind": "lion", "beta2": 0.99}, by_optax(optax.lion(RATE, 0.9, 0.99, weight_decay=0))),
    ({"kind": "lion", "beta1": 0.95, "beta2": 0.98, "weight_decay": 0.3},
     by_optax(optax.lion(RATE, 0.95, 0.98, weight_decay=0.3, mask=mask))),
    ({"kind": "rmsprop"}, by_torch(lambda w: [O.RMSprop(w, RATE)])),
    ({"kind": "rmsprop", "alpha": 0.9, "momentum": 0.8, "centered": True, "weight_decay": 0.1, "epsilon": 1e-4},
     by_torch(lambda w: [O.RMSprop(split(w, 0.1), RATE, alpha=0.9, momentum=0.8, centered=True, eps=1e-4)])),
    ({"kind": "adafactor"}, by_torch(lambda w: [O.Adafactor(w, RATE)])),
    ({"kind": "adafactor", "beta2_decay": -0.6, "least_scale": 0.5, "most_change": 1.5, "weight_decay": 0.2},
     by_torch(lambda w: [O.Adafactor(split(w, 0.2), RATE, beta2_decay=-0.6, eps=(None, 0.5), d=1.5)])),
    ({"kind": "muon", "momentum": 0.95, "nesterov": True},
     by_torch(lambda w: [O.Muon(matrices(w), RATE, weight_decay=0), O.AdamW(others(w, 0), RATE)])),
    ({"kind": "muon", "momentum": 0.8, "nesterov": False, "match_adamw": True, "iterations": 4, "weight_decay": 0.1,
      "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-6},
     by_torch(lambda w: [O.Muon(matrices(w), RATE, weight_decay=0.1, momentum=0.8, nesterov=False, ns_steps=4,
                                adjust_lr_fn="match_rms_adamw"),
                         O.AdamW(others(w, 0.1), RATE, betas=(0.8, 0.95), eps=1e-6)])),
    ({"kind": "adam", "eight_bits": True, "weight_decay": 0.01}, adam_8bit(0.9, 0.999, 1e-8, 0.01, False)),
    ({"kind": "adamw", "eight_bits": True, "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1},
     adam_8bit(0.8, 0.95, 1e-8, 0.1, True)),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/optimizers_long.json"), "w") as file:
    json.dump({"rate": RATE, "after": AFTER, "shapes": SHAPES, "large": LARGE,
               "cases": [{"options": options, "weights": weights} for options, weights in cases]}, file)
