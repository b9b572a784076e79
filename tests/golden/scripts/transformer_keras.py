#!/usr/bin/env python3
"""Makes transformer_keras.safetensors and transformer_keras_single_head.safetensors: a Transformer of Keras layers (Embedding,
Dense, LayerNormalization with epsilon 1e-6), post-norm without final norms, in float64.

Padding is hidden from the keys of the encoder, of the decoder's attention to the memory, and, together with what comes
later, of the decoder's attention to itself; hidden scores are lowered by 1e9. The loss is the sum over real targets divided
by their number. In the single-head model attention has no projections but the last, and the decoder's first layer no
self-attention.

Each holds the weights under the names and in the layouts of models/transformer.json, source, tokens, targets, logits, loss,
every gradient (grad.NAME) and ten losses of training with Adam (lr 1e-2, 0.9, 0.98, 1e-9). Needs tensorflow and torch (which
writes the file); the tests do not."""
import math, os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras, numpy as np, tensorflow as tf, torch
from keras import layers

from golden import in_data, save

SOURCE_VOCAB, TARGET_VOCAB, D, INNER, HEADS, LAYERS, PADDING = 13, 11, 8, 12, 2, 2, 0
keras.backend.set_floatx("float64")


class Names:
    """The definition's names of the weights; kernels of Dense stand the other way round there."""

    def __init__(self):
        self.weights, self.turned = {}, set()

    def dense(self, name, units, n_in, **settings):
        layer = layers.Dense(units, **settings)
        layer.build((None, n_in))
        self.weights[name + ".weight"], self.weights[name + ".bias"] = layer.kernel, layer.bias
        self.turned.add(name + ".weight")
        return layer

    def norm(self, name):
        layer = layers.LayerNormalization(epsilon=1e-6)
        layer.build((None, D))
        self.weights[name + ".weight"], self.weights[name + ".bias"] = layer.gamma, layer.beta
        return layer

    def embedding(self, name, rows):
        layer = layers.Embedding(rows, D)
        layer.build(None)
        self.weights[name + ".weight"] = layer.embeddings
        return layer

    def array(self, name, value):
        value = np.asarray(tf.convert_to_tensor(value))
        return torch.from_numpy(np.array(value.T if name in self.turned else value, order="C"))


class Attention:
    def __init__(self, names, name, single_head):
        self.heads = 1 if single_head else HEADS
        self.projections = [] if single_head else [names.dense(f"{name}.{each}", D, D) for each in ("query", "key", "value")]
        self.output = names.dense(name + ".output", D, D)

    def __call__(self, q, k, v, seen):
        if self.projections:
            q, k, v = (project(x) for project, x in zip(self.projections, (q, k, v)))
        q, k, v = (tf.transpose(tf.reshape(x, (x.shape[0], x.shape[1], self.heads, -1)), (0, 2, 1, 3)) for x in (q, k, v))
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(D // self.heads)
        scores += tf.cast(tf.logical_not(seen), scores.dtype) * -1e9
        heads = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), (0, 2, 1, 3))
        return self.output(tf.reshape(heads, (heads.shape[0], heads.shape[1], D)))


class Transformer:
    def __init__(self, single_head):
        self.names = names = Names()
        self.tables = [names.embedding("source_embedding", SOURCE_VOCAB), names.embedding("target_embedding", TARGET_VOCAB)]

        def sublayers(stack, i, *kinds):
            made = []
            for kind in kinds:
                name = f"{stack}.{i}.{kind}"
                inner = f"{name}.sublayer" + (".attention" if kind == "self_attention" else "")
                if kind == "feed_forward":
                    function = keras.Sequential([names.dense(inner + ".linear1", INNER, D, activation="relu"),
                                                 names.dense(inner + ".linear2", D, INNER)])
                else:
                    function = Attention(names, inner, single_head)
                made.append((kind, function, names.norm(name + ".norm")))
            return made

        self.encoder = [sublayers("encoder", i, "self_attention", "feed_forward") for i in range(LAYERS)]
        self.decoder = [sublayers("decoder", i, *(() if single_head and i == 0 else ("self_attention",)),
                                  "cross_attention", "feed_forward") for i in range(LAYERS)]
        self.generator = names.dense("generator", TARGET_VOCAB, D)
        names.weights = {"output_embedding.weight" if n == "generator.weight" else n: w for n, w in names.weights.items()}
        names.turned.add("output_embedding.weight")

    def embed(self, table, tokens):
        angle = np.arange(tokens.shape[1])[:, None] / 10000.0 ** (np.arange(0, D, 2) / D)
        waves = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(-1, D)
        return table(tokens) * math.sqrt(D) + waves

    def __call__(self, source, tokens):
        real_source, real = ((x != PADDING)[:, None, None, :] for x in (source, tokens))
        seen = tf.logical_and(real, tf.linalg.band_part(tf.ones((tokens.shape[1],) * 2, tf.bool), -1, 0))

        def run(x, layer, seen, memory=None):
            for kind, function, norm in layer:
                if kind == "self_attention":
                    y = function(x, x, x, seen)
                elif kind == "cross_attention":
                    y = function(x, memory, memory, real_source)
                else:
                    y = function(x)
                x = norm(x + y)
            return x

        memory = self.embed(self.tables[0], source)
        for layer in self.encoder:
            memory = run(memory, layer, real_source)
        x = self.embed(self.tables[1], tokens)
        for layer in self.decoder:
            x = run(x, layer, seen, memory)
        return self.generator(x)


def loss_of(logits, targets):
    real = tf.cast(targets != -1, logits.dtype)
    each = keras.losses.sparse_categorical_crossentropy(tf.maximum(targets, 0), logits, from_logits=True)
    return tf.reduce_sum(each * real) / tf.reduce_sum(real)


def make(file, single_head):
    random = np.random.default_rng(5)

    def sentences(vocab, lengths):
        made = np.full((len(lengths), max(lengths)), PADDING)
        for row, length in enumerate(lengths):
            made[row, :length] = random.integers(1, vocab, length)
        return made

    model = Transformer(single_head)
    weights = model.names.weights
    for name, weight in weights.items():  # norms and biases not at their start, so that every term shows
        start = 1.0 if ".norm.weight" in name else 0.0
        weight.assign((start + 0.3 * random.standard_normal(weight.shape)).astype(np.float32).astype(np.float64))
    source, whole = sentences(SOURCE_VOCAB, (6, 4, 5)), sentences(TARGET_VOCAB, (5, 6, 3))
    tokens, targets = whole[:, :-1], np.where(whole[:, 1:] == PADDING, -1, whole[:, 1:])
    variables = list(weights.values())

    def step():
        with tf.GradientTape() as tape:
            logits = model(source, tokens)
            loss = loss_of(logits, targets)
        return logits, loss, tape.gradient(loss, [v.value for v in variables])

    array = model.names.array
    logits, loss, gradients = step()
    gradients = [tf.convert_to_tensor(g) for g in gradients]
    fixture = {name: array(name, weight.value).float() for name, weight in weights.items()}
    fixture.update({"grad." + name: array(name, g) for name, g in zip(weights, gradients)})
    fixture.update({name: torch.from_numpy(value.copy()) for name, value in
                    (("source", source), ("tokens", tokens), ("targets", targets), ("logits", np.asarray(logits)))})
    fixture["loss"] = torch.tensor(float(loss), dtype=torch.float64)

    # As Python's floats the decays would be rounded to float32 where Keras corrects the moments.
    optimiser = keras.optimizers.Adam(1e-2, beta_1=np.float64(0.9), beta_2=np.float64(0.98), epsilon=1e-9)
    losses = []
    for _ in range(10):
        _, loss, gradients = step()
        optimiser.apply([tf.convert_to_tensor(g) for g in gradients], variables)
        losses.append(float(loss))
    fixture["losses"] = torch.tensor(losses, dtype=torch.float64)
    save(in_data(file), fixture)
    print(file, [round(v, 6) for v in losses])


if __name__ == "__main__":
    make("transformer_keras.safetensors", False)
    make("transformer_keras_single_head.safetensors", True)
