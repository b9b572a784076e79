#!/usr/bin/env python3
"""Makes gpt2.safetensors: a tiny GPT-2 in PyTorch, with the published names and layouts, in float64.

Holds the weights (under their names), tokens, targets, logits, loss, every gradient (grad.NAME) and ten losses of
training with AdamW (lr 1e-2, betas 0.9/0.95, epsilon 1e-8, decay 0.1 on arrays of two axes, gradients clipped to norm 1).
Needs torch; the tests do not."""
import math, torch, torch.nn.functional as F

from golden import in_data, save

V, T, D, L, H, B = 31, 12, 16, 2, 2, 3
torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def make_weights():
    # Larger than the usual 0.02, and norms and biases not at their start, so that every term shows.
    draw = lambda *shape, std=0.2: (std * torch.randn(*shape)).float().double()
    w = {"wte.weight": draw(V, D), "wpe.weight": draw(T, D)}
    norm = lambda name: w.update({name + ".weight": 1 + draw(D), name + ".bias": draw(D)})
    conv1d = lambda name, n_in, n_out: w.update({name + ".weight": draw(n_in, n_out), name + ".bias": draw(n_out)})
    for i in range(L):
        norm(f"h.{i}.ln_1")
        conv1d(f"h.{i}.attn.c_attn", D, 3 * D)
        conv1d(f"h.{i}.attn.c_proj", D, D)
        norm(f"h.{i}.ln_2")
        conv1d(f"h.{i}.mlp.c_fc", D, 4 * D)
        conv1d(f"h.{i}.mlp.c_proj", 4 * D, D)
    norm("ln_f")
    return {name: value.float().double().requires_grad_() for name, value in ((n, v.detach()) for n, v in w.items())}


def logits_of(w, tokens):
    norm = lambda x, name: F.layer_norm(x, (D,), w[name + ".weight"], w[name + ".bias"], 1e-5)
    conv1d = lambda x, name: x @ w[name + ".weight"] + w[name + ".bias"]
    b, t = tokens.shape
    x = w["wte.weight"][tokens] + w["wpe.weight"][torch.arange(t)]
    hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
    for i in range(L):
        q, k, v = conv1d(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(D, -1)
        q, k, v = (a.view(b, t, H, D // H).transpose(1, 2) for a in (q, k, v))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(D // H)).masked_fill(hidden, float("-inf"))
        heads = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, D)
        x = x + conv1d(heads, f"h.{i}.attn.c_proj")
        inner = F.gelu(conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + conv1d(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def loss_of(w, tokens, targets):
    return F.cross_entropy(logits_of(w, tokens).view(-1, V), targets.view(-1), ignore_index=-1)


def main():
    w = make_weights()
    tokens, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    targets[1, -3:] = -1  # ignored
    fixture = {name: value.detach().float() for name, value in w.items()}
    loss = loss_of(w, tokens, targets)
    loss.backward()
    fixture.update(tokens=tokens, targets=targets, logits=logits_of(w, tokens).detach(), loss=loss.detach())
    fixture.update({"grad." + name: value.grad.clone() for name, value in w.items()})

    groups = [{"params": [v for v in w.values() if v.dim() >= 2], "weight_decay": 0.1},
              {"params": [v for v in w.values() if v.dim() < 2], "weight_decay": 0.0}]
    optimiser, losses = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8), []
    for _ in range(10):
        optimiser.zero_grad()
        loss = loss_of(w, tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)
        optimiser.step()
        losses.append(loss.detach())
    fixture["losses"] = torch.stack(losses)
    save(in_data("gpt2.safetensors"), fixture)
    print("losses", [round(v.item(), 6) for v in losses])


if __name__ == "__main__":
    main()
