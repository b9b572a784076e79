#!/usr/bin/env python3
"""The recipe models/recipes/digits.json in PyTorch: the same network, data, optimiser and schedule. Prints the accuracy
on the last 360 digits for some seeds.

usage: torch_digits.py [SEEDS]        (beside: xtape train digits --set data.images=… --seed N)"""
import json, math, struct, sys
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, pad

torch.set_num_threads(1)
bytes_ = (Path(__file__).parents[2] / "examples/data/digits.safetensors").read_bytes()
size = struct.unpack("<Q", bytes_[:8])[0]
header = json.loads(bytes_[8:8 + size])


def array(name):
    first, last = header[name]["data_offsets"]
    data = bytearray(bytes_[8 + size + first:8 + size + last])
    return torch.frombuffer(data, dtype=torch.uint8).view(header[name]["shape"])


def normalised(images):
    return (images.float() / 255 - 0.3) / 0.38


images, labels = array("images")[:, None], array("labels").long()
training, right, held, answers = images[:-360], labels[:-360], normalised(images[-360:]), labels[-360:]


def run(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 10))
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight)
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight), nn.init.zeros_(layer.bias)
    epochs, batches, warmup, rate = 20, 23, 20, 5e-3
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    step = 0
    for _ in range(epochs):
        order = torch.randperm(len(training))
        for i in range(batches):
            step += 1
            part = order[len(training) * i // batches:len(training) * (i + 1) // batches]
            batch = []
            for image in training[part]:
                down, across = torch.randint(3, (2,)).tolist()
                batch.append(pad(image, (1, 1, 1, 1))[:, down:down + 8, across:across + 8])
            share = (step - warmup) / (epochs * batches - warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate * (step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * share)))
            optimizer.zero_grad()
            cross_entropy(model(normalised(torch.stack(batch))), right[part]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        return (model(held).argmax(1) == answers).float().mean().item()


found = [run(seed) for seed in range(1, int(sys.argv[1] if len(sys.argv) > 1 else 5) + 1)]
print("accuracy", " ".join(f"{100 * each:.2f}" for each in found), f"mean {100 * sum(found) / len(found):.2f} %")
