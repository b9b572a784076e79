"""Golden values of trainings with several losses, by PyTorch: makes several_losses.json.

A critic and a generator with a gradient penalty, and two tasks that share a trunk. Weights and batches are formulas,
which the test repeats. Each case has the loss of every update, in float64. Needs torch; the tests do not."""
import json
import os

import torch

UPDATES, ROWS = 50, 8
D = torch.float64


def waves(count, first, step, scale=1.0):
    return scale * torch.sin(first + step * torch.arange(count, dtype=D))


def weight(shape, first):
    count = 1
    for size in shape:
        count *= size
    return waves(count, first, 0.7, 0.5).reshape(shape).requires_grad_()


def batch(k):
    return {"x": waves(ROWS * 3, 1.3 * k, 0.37).reshape(ROWS, 3), "noise": waves(ROWS * 2, 0.9 * k, 0.71).reshape(ROWS, 2),
            "share": (0.5 + waves(ROWS, 1.0 * k, 0.53, 0.5)).reshape(ROWS, 1),
            "y": waves(ROWS, 0.4 * k, 0.91).reshape(ROWS, 1)}


class Gan:
    def __init__(self):
        self.critic = [weight((3, 4), 1.0), weight((4, 1), 2.0)]
        self.generator = [weight((2, 3), 3.0)]

    def judge(self, x):
        return torch.tanh(x @ self.critic[0]) @ self.critic[1]

    def critic_loss(self, given):
        fake = (given["noise"] @ self.generator[0]).detach()
        between = (given["share"] * given["x"] + (1 - given["share"]) * fake).requires_grad_()
        slope, = torch.autograd.grad(self.judge(between).sum(), between, create_graph=True)
        steepness = (slope * slope).sum(1).sqrt()
        return self.judge(fake).mean() - self.judge(given["x"]).mean() + 2 * ((steepness - 1) ** 2).mean()

    def generator_loss(self, given):
        return -self.judge(given["noise"] @ self.generator[0]).mean()


class Tasks:
    def __init__(self):
        self.trunk, self.first, self.second = weight((3, 4), 1.0), weight((4, 1), 2.0), weight((4, 3), 3.0)

    def first_loss(self, given):
        return ((torch.tanh(given["x"] @ self.trunk) @ self.first - given["y"]) ** 2).mean()

    def second_loss(self, given):
        return ((torch.tanh(given["x"] @ self.trunk) @ self.second - given["x"]) ** 2).mean()


def trained(turns):
    """turns: the (loss, optimizer, scheduler or None, clip, weights) of each update in turn."""
    losses = []
    for k in range(UPDATES):
        loss, optimizer, schedule, clip, weights = turns[k % len(turns)]
        value = loss(batch(k))
        for w in weights:
            w.grad = None
        gradients = torch.autograd.grad(value, weights)
        for w, g in zip(weights, gradients):
            w.grad = g
        if clip:
            torch.nn.utils.clip_grad_norm_(weights, clip)
        optimizer.step()
        for w in weights:
            w.grad = None
        if schedule:
            schedule.step()
        losses.append(value.item())
    return losses


def alternating():
    gan = Gan()
    critic = torch.optim.Adam(gan.critic, 0.02, betas=(0.0, 0.9))
    generator = torch.optim.SGD(gan.generator, 0.05, momentum=0.5)
    slower = torch.optim.lr_scheduler.LambdaLR(generator, lambda k: max(0.0, 1 - (k + 1) / 20))
    of_critic = (gan.critic_loss, critic, None, 0.5, gan.critic)
    return trained([of_critic, of_critic, (gan.generator_loss, generator, slower, 0, gan.generator)])


def tasks():
    model = Tasks()
    one = torch.optim.Adam([model.trunk, model.first, model.second], 0.02)
    first = (model.first_loss, one, None, 0, [model.trunk, model.first])
    second = (model.second_loss, one, None, 0, [model.trunk, model.second])
    return trained([first, second, first])  # the second task takes part in every second round


def simultaneous():
    gan = Gan()
    one = torch.optim.Adam(gan.critic + gan.generator, 0.02, betas=(0.5, 0.9))
    losses = []
    for k in range(UPDATES):
        given = batch(k)
        both = gan.critic_loss(given), gan.generator_loss(given)
        gradients = torch.autograd.grad(both[0], gan.critic) + torch.autograd.grad(both[1], gan.generator)
        for w, g in zip(gan.critic + gan.generator, gradients):
            w.grad = g
        one.step()
        losses.append([each.item() for each in both])
    return losses


path = os.path.join(os.path.dirname(__file__), "..", "data", "several_losses.json")
with open(path, "w") as file:
    json.dump({"alternating": alternating(), "tasks": tasks(), "simultaneous": simultaneous()}, file)
    file.write("\n")
