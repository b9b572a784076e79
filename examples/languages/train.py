"""Gradients of a definition, a training loop, and arrays that NumPy and PyTorch share, without a build.

PYTHONPATH=PREFIX/share/xtape/python python3 train.py   (it needs libxtape-c and NumPy)"""
import numpy as np
import xtape

# 1. A definition: a GPT-2 of one layer. Its loss is recorded on a tape, its gradients are more nodes.
sizes = dict(n_layer=1, n_embd=16, n_head=2, n_positions=32, vocab_size=27, dropout_rate=0)
model = xtape.Model("gpt2", hyper=sizes, seed=1)
tape = xtape.Tape(mode="train")
tokens, targets = model.inputs(tape, "loss", b=4, t=16)
total, count = model.record(tape, "loss", tokens, targets)
weights = model.weights
by_embedding, by_norm = xtape.grad(total, [tape.parameter(weights, name) for name in ("wte.weight", "ln_f.weight")])

text = np.resize(np.frombuffer(b"the quick brown fox jumps over the lazy dog ", np.uint8), 400)
codes = np.where(text == 32, 0, text - 96).astype(np.int64)  # 27 letters


def batch(rng):
    starts = rng.integers(0, len(codes) - 17, 4)
    rows = np.stack([codes[start:start + 17] for start in starts])
    return {tokens: rows[:, :-1], targets: rows[:, 1:]}


rng = np.random.default_rng(0)
player = xtape.Player([total, by_embedding, by_norm])
loss, embedding, norm = player(batch(rng))
print(f"loss {loss / 64:.3f}, gradients {embedding.shape} {norm.shape}")

# 2. A training loop. The arrays in `weights` change in place.
step = xtape.Step(total / count, weights, optimizer={"kind": "adamw"}, schedule=0.01, clip=1)
losses = [step(batch(rng)) for _ in range(150)]
print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last")
assert losses[-1] < 0.5 * losses[0]
logits = model.play("logits", tokens=codes[None, :9])["logits"]
print("'the quick' and", logits[0, -1].argmax(), "(0 is a space)")

# 3. Without copies: NumPy and PyTorch see the weights that the next update writes.
view = weights["wte.weight"]
before = view.copy()
step(batch(rng))
assert not np.array_equal(view, before)
shared = np.from_dlpack(weights.array("wte.weight"))
assert shared.ctypes.data == view.ctypes.data
try:
    import torch
    tensor = torch.from_dlpack(weights.array("wte.weight"))
    tensor.zero_()
    assert not view.any()
    mine = torch.ones(3, 2)
    x = xtape.Store({"x": xtape.Array(mine)})["x"]  # and the other way
    x[0, 0] = 5
    assert mine[0, 0] == 5
except ImportError:
    print("PyTorch is not installed")
