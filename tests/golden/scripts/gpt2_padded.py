#!/usr/bin/env python3
"""Makes gpt2_padded.safetensors: a GPT-2 on padded rows, put together in TensorFlow, in float64.

Token 0 is padding: its vectors are zero, no query sees it, places count from 1; masks are added as -1e9. ReLU, epsilon
1e-6, no dropout. Holds the weights under GPT-2's names, tokens, targets, logits, loss, every gradient (grad.NAME), and
scaled.logits, where the words' vectors are multiplied by the root of the width. Needs tensorflow and torch; the tests do
not."""
import numpy as np
import tensorflow as tf
import torch

from golden import in_data, save

V, P, T, D, L, H, B = 29, 14, 11, 16, 2, 2, 3


def make_weights(random):
    draw = lambda *shape, mean=0: tf.Variable(np.float64(np.float32(mean + 0.3 * random.standard_normal(shape))))
    w = {"wte.weight": draw(V, D), "wpe.weight": draw(P, D)}
    for i in range(L):
        for name, n_in, n_out in (("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D), ("mlp.c_fc", D, 4 * D),
                                  ("mlp.c_proj", 4 * D, D)):
            w[f"h.{i}.{name}.weight"], w[f"h.{i}.{name}.bias"] = draw(n_in, n_out), draw(n_out)
    for name in [f"h.{i}.ln_{k}" for i in range(L) for k in (1, 2)] + ["ln_f"]:
        w[name + ".weight"], w[name + ".bias"] = draw(D, mean=1), draw(D)
    return w


def looked_up(table, indices, scale=1.0):
    kept = tf.cast(tf.not_equal(indices, 0), tf.float64)
    return tf.nn.embedding_lookup(table, indices) * kept[..., tf.newaxis] * scale


def norm(w, name, x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * w[name + ".weight"] + w[name + ".bias"]


def dense(w, name, x):
    return tf.tensordot(x, w[name + ".weight"], 1) + w[name + ".bias"]


def attention(w, name, x, mask):
    split = lambda y: tf.transpose(tf.reshape(y, (B, T, H, D // H)), (0, 2, 1, 3))
    q, k, v = map(split, tf.split(dense(w, name + ".c_attn", x), 3, -1))
    scores = tf.matmul(q, k, transpose_b=True) / np.sqrt(D // H) + mask * -1e9
    heads = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), (0, 2, 1, 3))
    return dense(w, name + ".c_proj", tf.reshape(heads, (B, T, D)))


def logits_of(w, tokens, scale=1.0):
    places = tf.range(1, T + 1, dtype=tf.int64) * tf.cast(tf.not_equal(tokens, 0), tf.int64)
    future = 1 - tf.linalg.band_part(tf.ones((T, T), tf.float64), -1, 0)
    mask = tf.maximum(tf.cast(tf.equal(tokens, 0), tf.float64)[:, tf.newaxis, tf.newaxis], future)
    x = looked_up(w["wte.weight"], tokens, scale) + looked_up(w["wpe.weight"], places)
    for i in range(L):
        x = x + attention(w, f"h.{i}.attn", norm(w, f"h.{i}.ln_1", x), mask)
        inner = tf.nn.relu(dense(w, f"h.{i}.mlp.c_fc", norm(w, f"h.{i}.ln_2", x)))
        x = x + dense(w, f"h.{i}.mlp.c_proj", inner)
    return tf.matmul(norm(w, "ln_f", x), w["wte.weight"], transpose_b=True)


def main():
    random = np.random.default_rng(4)
    w = make_weights(random)
    tokens, targets = random.integers(1, V, (B, T)), random.integers(1, V, (B, T))
    for row, length in ((1, 6), (2, 2)):
        tokens[row, length:], targets[row, length:] = 0, -1
    tokens, counted = tf.constant(tokens), tf.constant(targets >= 0)
    with tf.GradientTape() as tape:
        logits = logits_of(w, tokens)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant(np.maximum(targets, 0)), logits)
        loss = tf.reduce_sum(tf.where(counted, losses, 0)) / tf.reduce_sum(tf.cast(counted, tf.float64))
    by = tape.gradient(loss, w)
    fixture = {name: torch.tensor(value.numpy()).float() for name, value in w.items()}
    fixture.update(tokens=torch.tensor(tokens.numpy()), targets=torch.tensor(targets), loss=torch.tensor(loss.numpy()),
                   logits=torch.tensor(logits.numpy()))
    fixture["scaled.logits"] = torch.tensor(logits_of(w, tokens, np.sqrt(D)).numpy())
    fixture.update({"grad." + name: torch.tensor(tf.convert_to_tensor(value).numpy()) for name, value in by.items()})
    save(in_data("gpt2_padded.safetensors"), fixture)
    print("loss", float(loss))


if __name__ == "__main__":
    main()
