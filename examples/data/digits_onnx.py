"""Writes examples/data/digits.onnx: a small convolutional network that PyTorch trained on the digits 0 to 4 only.

usage: digits_onnx.py [FILE]        (needs torch, onnx and scikit-learn)"""
import sys
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ModuleList([nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)])
        self.hidden = nn.Linear(64, 32)
        self.out = nn.Linear(32, 10)

    def forward(self, images):  # [b, 8, 8], 0 to 255
        x = (images / 255).unsqueeze(1)
        for conv in self.conv:
            x = torch.max_pool2d(torch.relu(conv(x)), 2)
        return self.out(torch.relu(self.hidden(x.flatten(1))))


torch.manual_seed(1)
digits = load_digits()
known = digits.target < 5
x = torch.tensor(digits.images[known] * (255 / 16), dtype=torch.float32).round()
y = torch.tensor(digits.target[known])
model = Digits()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
path = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parent / "digits.onnx")
torch.onnx.export(model.eval(), (x[:2],), path, input_names=["images"], output_names=["scores"], dynamo=False,
                  dynamic_axes={"images": {0: "batch"}, "scores": {0: "batch"}}, opset_version=18)
print("accuracy on what it knows:", (model(x).argmax(1) == y).float().mean().item())
