#!/usr/bin/env python3
"""Makes lstm_attention.safetensors and transformer_lm_relu.safetensors, transformer_lm_gelu.safetensors: NMTAttn and
TransformerLM assembled in PyTorch layer by layer, in float64, from a shift to the right to a log-softmax.

NMTAttn holds its LSTMs' gates in the order i, g, f, o and adds 1 to f before its sigmoid, unlike PyTorch: the fixture has
weights and gradients in that order, and biases without that 1.

Each holds the weights under the names of its definition, sentences (padded with 0; what is shifted), tokens (sentences shifted
to the right), targets (-1 at padding), log_probabilities, the mean loss, every gradient (grad.NAME) and ten losses of training
with Adam (lr 1e-2, betas 0.9/0.98, epsilon 1e-9); NMTAttn the source, too. Needs torch; the tests do not."""
import math, torch, torch.nn as nn, torch.nn.functional as F

from golden import adam_losses, in_data, save

SOURCE_VOCAB, TARGET_VOCAB, D, INNER, HEADS, LAYERS, PADDING = 13, 11, 8, 12, 2, 2, 0
torch.set_default_dtype(torch.float64)


def shifted(tokens):
    return F.pad(tokens, (1, 0))[:, :-1]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(D, D) for _ in range(4))

    def forward(self, q, k, v, hidden):
        q, k, v = (f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f, x in
                   ((self.query, q), (self.key, k), (self.value, v)))
        scores = q @ k.transpose(-1, -2) / math.sqrt(D // HEADS)
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(-2))


class NMTAttn(nn.Module):
    def __init__(self):
        super().__init__()
        self.source_embedding, self.target_embedding = nn.Embedding(SOURCE_VOCAB, D), nn.Embedding(TARGET_VOCAB, D)
        self.encoder = nn.LSTM(D, D, LAYERS, batch_first=True)
        self.pre_attention = nn.LSTM(D, D, batch_first=True)
        self.cross_attention = Attention()
        self.decoder = nn.LSTM(D, D, LAYERS, batch_first=True)
        self.output = nn.Linear(D, TARGET_VOCAB)

    def forward(self, sentences, source):
        memory = self.encoder(self.source_embedding(source))[0]
        queries = self.pre_attention(self.target_embedding(shifted(sentences)))[0]
        x = queries + self.cross_attention(queries, memory, memory, (source == PADDING)[:, None, None, :])
        return self.output(self.decoder(x)[0]).log_softmax(-1)

    def named(self, pick):
        """By the definition's names, what `pick` gives for every parameter."""
        def gates_in_turn(value):
            i, f, g, o = value.chunk(4)
            return torch.cat([i, g, f, o])

        found = {}
        for name, p in self.named_parameters():
            stack, _, rest = name.partition(".")
            if "_l" not in rest:
                found[name] = pick(p)
                continue
            part, side, layer = rest.split("_")
            path = stack + ("" if stack == "pre_attention" else "." + layer[1:])
            value = gates_in_turn(pick(p))
            found[f"{path}.lstm.{'input' if side == 'ih' else 'recurrent'}.{part}"] = value
        return found

    def add_to_forget_biases(self, value):
        for name, p in self.named_parameters():
            if "bias_ih" in name:
                p.data.view(4, D)[1] += value


class TransformerLM(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation = activation
        self.embedding = nn.Embedding(TARGET_VOCAB, D)
        self.decoder = nn.ModuleList(nn.ModuleDict(dict(
            norm1=nn.LayerNorm(D, eps=1e-6), attention=Attention(), norm2=nn.LayerNorm(D, eps=1e-6),
            linear1=nn.Linear(D, INNER), linear2=nn.Linear(INNER, D))) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.output = nn.Linear(D, TARGET_VOCAB)

    def forward(self, sentences):
        steps = sentences.shape[1]
        angle = torch.arange(steps)[:, None] / 10000.0 ** (torch.arange(0, D, 2) / D)
        x = self.embedding(shifted(sentences)) + torch.stack([angle.sin(), angle.cos()], 2).reshape(-1, D)
        future = torch.ones(steps, steps, dtype=torch.bool).triu(1)
        for layer in self.decoder:
            y = layer["norm1"](x)
            x = x + layer["attention"](y, y, y, future)
            x = x + layer["linear2"](self.activation(layer["linear1"](layer["norm2"](x))))
        return self.output(self.norm(x)).log_softmax(-1)

    def named(self, pick):
        paths = {"norm1": "self_attention.norm", "attention": "self_attention.sublayer.attention", "norm2": "feed_forward.norm",
                 "linear1": "feed_forward.sublayer.linear1", "linear2": "feed_forward.sublayer.linear2"}
        return {".".join(paths.get(part, part) for part in name.split(".")): pick(p) for name, p in self.named_parameters()}

    def add_to_forget_biases(self, value):
        """It has none."""


def sentences_of(vocab, lengths):
    made = torch.full((len(lengths), max(lengths)), PADDING)
    for row, length in enumerate(lengths):
        made[row, :length] = torch.randint(1, vocab, (length,))
    return made


def make(file, model, *source):
    with torch.no_grad():  # norms and biases not at their start, so that every term shows
        for name, p in model.named_parameters():
            p.copy_(((1.0 if "norm" in name and "weight" in name else 0.0) + 0.4 * torch.randn(p.shape)).float())
    fixture = {name: value.float() for name, value in model.named(lambda p: p.detach()).items()}
    model.add_to_forget_biases(1.0)
    sentences = sentences_of(TARGET_VOCAB, (5, 3, 4))
    targets = sentences.masked_fill(sentences == PADDING, -1)

    def loss_of(log_probabilities):
        return F.nll_loss(log_probabilities.flatten(0, 1), targets.flatten(), ignore_index=-1)

    log_probabilities = model(sentences, *source)
    loss = loss_of(log_probabilities)
    loss.backward()
    fixture.update({"grad." + name: value.clone() for name, value in model.named(lambda p: p.grad).items()})
    fixture.update(sentences=sentences, tokens=shifted(sentences), targets=targets, loss=loss.detach(),
                   log_probabilities=log_probabilities.detach(), **({"source": source[0]} if source else {}))

    fixture["losses"] = adam_losses(model, lambda: loss_of(model(sentences, *source)))
    save(in_data(file), fixture)
    print(file, [round(v.item(), 6) for v in fixture["losses"]])


if __name__ == "__main__":
    torch.manual_seed(5)
    make("lstm_attention.safetensors", NMTAttn(), sentences_of(SOURCE_VOCAB, (6, 4, 5)))
    make("transformer_lm_relu.safetensors", TransformerLM(F.relu))
    make("transformer_lm_gelu.safetensors", TransformerLM(F.gelu))
