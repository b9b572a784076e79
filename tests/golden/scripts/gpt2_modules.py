#!/usr/bin/env python3
"""Makes gpt2_modules.safetensors: what the modules of a tiny GPT-2 in PyTorch return, its weights and their gradients; and
lstm_modules.safetensors, the same of an LSTM. Saved with scripts/torch_activations.py, as a user would.
Needs torch; the tests do not."""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from torch_activations import save_activations, save_arrays  # noqa: E402

from golden import in_data  # noqa: E402

V, T, D, L, H, B = 19, 6, 8, 2, 2, 2


class Conv1D(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(0.4 * torch.randn(n_in, n_out)), nn.Parameter(0.4 * torch.randn(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(D, 3 * D), Conv1D(D, D)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (a.view(b, t, H, D // H).transpose(1, 2) for a in self.c_attn(x).split(D, -1))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(heads.transpose(1, 2).reshape(b, t, D))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.act, self.c_proj = Conv1D(D, 4 * D), nn.GELU(), Conv1D(4 * D, D)

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(D), Attention(), nn.LayerNorm(D), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(T, D)
        self.h, self.ln_f = nn.ModuleList(Layer() for _ in range(L)), nn.LayerNorm(D)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x) @ self.wte.weight.T


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(V, D), nn.LSTM(D, D, batch_first=True)
        self.output = nn.Linear(D, V)

    def forward(self, tokens):
        return self.output(self.lstm(self.embedding(tokens))[0])


def save(name, model):
    tokens, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    with torch.no_grad():
        for parameter in model.parameters():  # so that every norm, bias and gate shows
            parameter += 0.2 * torch.randn_like(parameter)
    path = in_data(name)
    save_activations(path, model, lambda: F.cross_entropy(model(tokens).view(-1, V), targets.view(-1), reduction="sum"))
    save_arrays(path.replace("modules", "modules_inputs"), {"tokens": tokens, "targets": targets})


torch.manual_seed(3)
save("gpt2_modules.safetensors", GPT2())
save("lstm_modules.safetensors", LSTM())
