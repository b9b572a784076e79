"""The models of the benchmark's workloads in PyTorch, with the sizes of tests/bench/workload.cpp and the initialisation
of models/*.json."""
import math

import torch, torch.nn as nn, torch.nn.functional as F

# V: vocabulary, T: tokens of a row, B: rows of a batch. The peer of each is the entry of the same name in workload.cpp.
WORKLOADS = {
    "gpt-char": dict(kind="gpt", V=65, T=64, B=12, layers=4, heads=4, width=128, bias=False, dropout=0.0),
    "gpt-baby": dict(kind="gpt", V=65, T=256, B=8, layers=6, heads=6, width=384, bias=False, dropout=0.2),
    "gpt2-124m": dict(kind="gpt", V=50257, T=64, B=4, layers=12, heads=12, width=768, bias=True, dropout=0.0),
    "transformer": dict(kind="transformer", V=8192, T=32, B=64, layers=4, heads=8, width=128, inner=512, dropout=0.1),
    "gru-attention": dict(kind="gru", V=8192, T=24, B=64, width=256),
    "lstm-attention": dict(kind="lstm", V=8192, T=24, B=64, width=256, layers=2, heads=4),
    "gpt2-124m-decode": dict(kind="gpt", V=50257, T=256, B=1, layers=12, heads=12, width=768, bias=True, dropout=0.0),
}


class Attention(nn.Module):
    """Causal self-attention by the fused kernel. `past`: the keys and values of earlier tokens, extended in place."""

    def __init__(self, width, heads, bias, dropout):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        self.heads, self.dropout = heads, dropout

    def forward(self, x, past=None):
        b, t, width = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.c_attn(x).split(width, dim=2))
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            past[:] = [k, v]
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=t > 1)
        return F.dropout(self.c_proj(y.transpose(1, 2).reshape(b, t, width)), self.dropout, self.training)


class Layer(nn.Module):
    def __init__(self, width, heads, bias, dropout):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, bias, dropout)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width, bias), nn.Linear(4 * width, width, bias)
        self.dropout = dropout

    def forward(self, x, past=None):
        x = x + self.attn(self.ln_1(x), past)
        y = self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))
        return x + F.dropout(y, self.dropout, self.training)


class Gpt(nn.Module):
    def __init__(self, V, T, layers, heads, width, bias, dropout, **_):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, width), nn.Embedding(T, width)
        self.h = nn.ModuleList(Layer(width, heads, bias, dropout) for _ in range(layers))
        self.ln_f, self.dropout = nn.LayerNorm(width), dropout
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * layers) if "c_proj" in name else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        self.looked_up = []  # the table of tokens is also the output

    def forward(self, tokens, start=0, past=None):
        x = self.wte(tokens) + self.wpe(torch.arange(start, start + tokens.shape[1]))
        x = F.dropout(x, self.dropout, self.training)
        for i, layer in enumerate(self.h):
            x = layer(x, None if past is None else past[i])
        return self.ln_f(x) @ self.wte.weight.T


def glorot(weight, parts=1):
    """Glorot and Bengio (2010), eq. 16, for each of `parts` matrices that are stacked along the rows."""
    for part in weight.data.chunk(parts):
        nn.init.xavier_uniform_(part)


def initialise_recurrent(net, forget_bias=0.0):
    """Glorot for the inputs, orthogonal for the states, zeros for biases except the forget gate's."""
    for name, weight in net.named_parameters():
        if "weight_ih" in name:
            glorot(weight)
        elif "weight_hh" in name:
            nn.init.orthogonal_(weight)
        elif "bias" in name:
            nn.init.zeros_(weight)
            if forget_bias and "bias_ih" in name:
                weight.data.chunk(4)[1].fill_(forget_bias)


class Translator(nn.Module):
    """What the three translators share: separate tables for source and target, and an output layer."""

    def __init__(self, V, width, std):
        super().__init__()
        self.source, self.target, self.output = nn.Embedding(V, width), nn.Embedding(V, width), nn.Linear(width, V)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=std)
        glorot(self.output.weight)
        nn.init.zeros_(self.output.bias)
        self.looked_up = [self.source.weight, self.target.weight]


class Transformer(Translator):
    def __init__(self, V, T, layers, heads, width, inner, dropout, **_):
        super().__init__(V, width, width**-0.5)
        angles = torch.arange(T)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], 2).reshape(T, width))
        self.net = nn.Transformer(width, heads, layers, layers, inner, dropout, batch_first=True, layer_norm_eps=1e-6)
        for name, weight in self.net.named_parameters():
            if weight.dim() > 1:
                glorot(weight, 3 if "in_proj" in name else 1)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        self.scale, self.dropout = math.sqrt(width), dropout

    def embed(self, table, tokens):
        return F.dropout(table(tokens) * self.scale + self.positions[: tokens.shape[1]], self.dropout, self.training)

    def forward(self, source, tokens):
        future = torch.full((tokens.shape[1],) * 2, float("-inf")).triu(1)
        return self.output(self.net(self.embed(self.source, source), self.embed(self.target, tokens), tgt_mask=future,
                                    tgt_is_causal=True))


class GruAttention(Translator):
    """Bahdanau et al. (2015): additive attention at every step of the decoder."""

    def __init__(self, V, width, **_):
        super().__init__(V, width, 1.0)
        self.encoder, self.cell = nn.GRU(width, width, batch_first=True), nn.GRUCell(2 * width, width)
        self.key, self.query = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        initialise_recurrent(self.encoder)
        initialise_recurrent(self.cell)
        for part in self.cell.weight_ih.data.chunk(2, dim=1):  # of the context, of the embedding
            glorot(part)
        for layer in (self.key, self.query, self.score):
            glorot(layer.weight)
        nn.init.zeros_(self.key.bias)

    def forward(self, source, tokens):
        memory, h = self.encoder(self.source(source))
        h, keys, embedded, states = h[0], self.key(memory), self.target(tokens), []
        for t in range(tokens.shape[1]):
            weights = self.score(torch.tanh(keys + self.query(h)[:, None])).softmax(1)
            h = self.cell(torch.cat([(weights * memory).sum(1), embedded[:, t]], -1), h)
            states.append(h)
        return self.output(torch.stack(states, 1))


class LstmAttention(Translator):
    """NMTAttn: an LSTM before multi-head attention with a residual connection, and an LSTM stack after it."""

    def __init__(self, V, width, layers, heads, **_):
        super().__init__(V, width, 1.0)
        self.encoder, self.before, self.decoder = (
            nn.LSTM(width, width, n, batch_first=True) for n in (layers, 1, layers))
        for net in (self.encoder, self.before, self.decoder):
            initialise_recurrent(net, forget_bias=1.0)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        glorot(self.attention.in_proj_weight, 3)
        glorot(self.attention.out_proj.weight)

    def forward(self, source, tokens):
        memory, queries = self.encoder(self.source(source))[0], self.before(self.target(tokens))[0]
        attended = self.attention(queries, memory, memory, need_weights=False)[0]
        return self.output(self.decoder(queries + attended)[0])


KINDS = dict(gpt=Gpt, transformer=Transformer, gru=GruAttention, lstm=LstmAttention)


def make(name):
    return KINDS[WORKLOADS[name]["kind"]](**WORKLOADS[name])


def adamw(model):
    """That of workload.cpp. The fused update is the fastest."""
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01, fused=True)


def batch(name, rows=None):
    """Random tokens and targets, int64 [rows, T]; without 0, which pads."""
    w = WORKLOADS[name]
    return [torch.randint(1, w["V"], (rows or w["B"], w["T"])) for _ in range(2)]


def loss_of(name, model, tokens, targets):
    """The mean loss of a batch. A translator reads `tokens` as the source, and the targets shifted by one."""
    logits = model(tokens) if WORKLOADS[name]["kind"] == "gpt" else model(tokens, targets.roll(1, 1))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
