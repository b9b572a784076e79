#!/usr/bin/env python3
"""The PyTorch counterpart of models/recipes/shakespeare_lstm.json: the same language model and training.

Two nn.LSTM layers with tied embeddings, dropout, consecutive windows whose states are carried, AdamW, the recipe's
schedule. Prints the validation loss (mean over every character of the last tenth, in strips as training reads them) and
the time.

usage: torch_lstm_lm.py TEXT [--steps N] [--threads N]
"""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, LAYERS, DROPOUT, BATCH, BLOCK = 256, 2, 0.2, 32, 64
RATE, FINAL_RATE, WARMUP, CLIP = 4e-3, 1e-4, 50, 1.0


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.table = nn.Embedding(vocabulary, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS, dropout=DROPOUT, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        nn.init.normal_(self.table.weight, std=0.05)
        for name, weight in self.lstm.named_parameters():
            if "weight_ih" in name:
                nn.init.xavier_uniform_(weight)
            elif "weight_hh" in name:
                nn.init.orthogonal_(weight)
            else:
                nn.init.zeros_(weight)
                if "bias_ih" in name:
                    weight.data[WIDTH : 2 * WIDTH] = 1  # the forget gate's

    def forward(self, tokens, state):
        x = F.dropout(self.table(tokens), DROPOUT, self.training)
        x, state = self.lstm(x, state)
        return F.dropout(x, DROPOUT, self.training) @ self.table.weight.T + self.bias, state


def strips(tokens):
    """[rows, length]: row i is strip i of the text and one more token, the first of the next strip."""
    length = (len(tokens) - 1) // BATCH
    return torch.stack([tokens[i * length : (i + 1) * length + 1] for i in range(BATCH)])


def validation_loss(model, rows):
    model.eval()
    total, count, state = 0.0, 0, None
    with torch.no_grad():
        for start in range(0, rows.shape[1] - 1, BLOCK):
            piece = rows[:, start : start + BLOCK + 1]
            logits, state = model(piece[:, :-1], state)
            total += F.cross_entropy(logits.reshape(-1, logits.shape[-1]), piece[:, 1:].reshape(-1), reduction="sum").item()
            count += piece[:, 1:].numel()
    model.train()
    return total / count


def rate_at(step, steps):
    if step <= WARMUP:
        return RATE * step / WARMUP
    share = (step - WARMUP) / (steps - WARMUP)
    return FINAL_RATE + (RATE - FINAL_RATE) * 0.5 * (1 + math.cos(math.pi * share))


def main():
    words = argparse.ArgumentParser()
    words.add_argument("text")
    words.add_argument("--steps", type=int, default=2400)
    words.add_argument("--threads", type=int, default=2)
    words = words.parse_args()
    torch.set_num_threads(words.threads)
    torch.manual_seed(1)

    text = open(words.text, encoding="utf-8").read()
    cut = int(len(text) * 0.9)
    characters = sorted(set(text[:cut]))
    number = {c: i for i, c in enumerate(characters)}
    tokens = torch.tensor([number[c] for c in text])
    training, validation = strips(tokens[:cut]), strips(tokens[cut:])
    model = Model(len(characters))
    matrices = [w for w in model.parameters() if w.dim() > 1]
    others = [w for w in model.parameters() if w.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.99))
    windows = (training.shape[1] - 1) // BLOCK
    begun, state = time.time(), None
    for step in range(1, words.steps + 1):
        window = (step - 1) % windows
        if window == 0:
            state = None
        piece = training[:, window * BLOCK : (window + 1) * BLOCK + 1]
        logits, state = model(piece[:, :-1], state)
        state = tuple(s.detach() for s in state)
        loss = F.cross_entropy(logits.reshape(-1, len(characters)), piece[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, words.steps)
        optimizer.step()
        if step % 300 == 0:
            print(f"step {step}  loss {loss.item():.4f}  validation loss {validation_loss(model, validation):.4f}  "
                  f"{time.time() - begun:.0f} s", flush=True)
    print(f"validation loss {validation_loss(model, validation):.4f} after {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
