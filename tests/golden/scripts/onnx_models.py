#!/usr/bin/env python3
"""Makes onnx/NAME.onnx and onnx/NAME.safetensors: networks that PyTorch exports, in float32. They are an encoder of a
transformer followed by recurrent layers, a convolutional network, and causal attention with shapes that are computed
while recording. NAME.safetensors has an input x, the output y, and the gradient x_grad of sum(y * y). Needs torch; the
tests do not."""
import io, pathlib, warnings

import torch, torch.nn as nn, torch.nn.functional as F
import torch.onnx._internal.torchscript_exporter.onnx_proto_utils as exporter

from golden import in_data, save

warnings.simplefilter("ignore")
exporter._add_onnxscript_fn = lambda model, functions: model  # it imports the package onnx, for functions that we lack


class Encoder(nn.Module):
    """[b, t, 4] to [b, t, 3]."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(4, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.1)
        self.lstm = nn.LSTM(8, 3, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(6, 3, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(self.encoder(self.inside(x)))[0])[0].softmax(-1)


class Convolutional(nn.Module):
    """[b, 3, h, w] to [b, 5]."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.up = nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1)
        self.groups, self.last = nn.GroupNorm(2, 4), nn.Linear(4, 5)

    def forward(self, x):
        x = F.relu6(self.norm(self.first(x)))
        x = F.max_pool2d(x + F.hardswish(self.second(x)), 3, 2, 1)
        x = F.gelu(self.groups(F.silu(self.up(x))))
        return F.log_softmax(self.last(F.adaptive_avg_pool2d(x, 1).flatten(1)), -1)


class Causal(nn.Module):
    """[b, t, 4] to [b, t - 1, 16]."""

    def __init__(self):
        super().__init__()
        self.inside, self.both, self.norm = nn.Linear(4, 8), nn.Linear(8, 24), nn.LayerNorm(8)

    def forward(self, x):
        b, t, _ = x.shape
        h = self.inside(x)
        query, key, value = [each.view(b, t, 2, 4).transpose(1, 2) for each in self.both(self.norm(h)).split(8, -1)]
        mask = torch.full((t, t), float("-inf")).triu(1)
        h = h + ((query @ key.transpose(-1, -2) / 2 + mask).softmax(-1) @ value).transpose(1, 2).reshape(b, t, 8)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return torch.cat([h, (h * torch.arange(t).float()[:, None].sin()).clamp(-1, 1)], -1)[:, 1:]


def export(name, network, opset, *shape):
    torch.manual_seed(1)
    x = torch.randn(shape)
    network.eval()
    bytes = io.BytesIO()
    axes = {0: "b", 1: "t"} if len(shape) == 3 else {0: "b"}
    torch.onnx.export(network, (x,), bytes, opset_version=opset, dynamo=False, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": axes, "y": axes})
    pathlib.Path(in_data(f"onnx/{name}.onnx")).write_bytes(bytes.getvalue())
    x.requires_grad_()
    y = network(x)
    y.square().sum().backward()
    save(in_data(f"onnx/{name}.safetensors"), {"x": x, "y": y, "x_grad": x.grad})


torch.manual_seed(0)
export("encoder", Encoder(), 17, 2, 5, 4)
export("convolutional", Convolutional(), 11, 2, 3, 8, 8)
export("causal", Causal(), 14, 2, 5, 4)
