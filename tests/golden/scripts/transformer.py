#!/usr/bin/env python3
"""Makes transformer_post_norm.safetensors and transformer_pre_norm.safetensors from PyTorch's nn.Transformer, in float64.

Post-norm has tables of its own for source, target and output, with a bias on the output; pre-norm has one table for all
three, and learns with the padding class left out of the smoothing. Both have PyTorch's final norms, sentences with padding,
label smoothing 0.1, and sinusoidal positions: sine and cosine in turn, or one after the other.

Each holds the weights under the names of models/transformer.json, source, tokens, targets, logits, loss, plain_loss, every
gradient (grad.NAME), the attention of the last decoder layer to the memory, and ten losses of training with Adam
(lr 1e-2, betas 0.9/0.98, epsilon 1e-9). Needs torch; the tests do not."""
import math, torch, torch.nn as nn, torch.nn.functional as F

from golden import adam_losses, in_data, save

SOURCE_VOCAB, TARGET_VOCAB, D, INNER, HEADS, LAYERS, EPSILON, PADDING = 13, 11, 8, 12, 2, 2, 1e-6, 0
torch.set_default_dtype(torch.float64)


class Transformer(nn.Module):
    def __init__(self, pre_norm):
        super().__init__()
        self.pre_norm = pre_norm
        target_vocab = SOURCE_VOCAB if pre_norm else TARGET_VOCAB
        self.source_table = nn.Embedding(SOURCE_VOCAB, D)
        self.net = nn.Transformer(D, HEADS, LAYERS, LAYERS, INNER, 0.0, layer_norm_eps=EPSILON, batch_first=True,
                                  norm_first=pre_norm)
        self.target_table = self.source_table if pre_norm else nn.Embedding(target_vocab, D)
        self.generator = nn.Linear(D, target_vocab, bias=not pre_norm)
        if pre_norm:
            self.generator.weight = self.source_table.weight
        with torch.no_grad():  # norms and biases not at their start, so that every term shows
            for name, p in self.named_parameters():
                p.copy_(((1.0 if "norm" in name and "weight" in name else 0.0) + 0.3 * torch.randn(p.shape)).float())

    def embed(self, table, tokens):
        angle = torch.arange(tokens.shape[1])[:, None] / 10000.0 ** (torch.arange(0, D, 2) / D)
        waves = (torch.cat([angle.sin(), angle.cos()], 1) if self.pre_norm else
                 torch.stack([angle.sin(), angle.cos()], 2).reshape(-1, D))
        return table(tokens) * math.sqrt(D) + waves

    def forward(self, source, tokens, hide_padded_targets=False):
        future = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        x = self.net(self.embed(self.source_table, source), self.embed(self.target_table, tokens), tgt_mask=future,
                     src_key_padding_mask=source == PADDING, memory_key_padding_mask=source == PADDING,
                     tgt_key_padding_mask=tokens == PADDING if hide_padded_targets else None)
        return self.generator(x)


def names_of(model):
    """The definition's name of every weight, and the weight (PyTorch keeps query, key and value in one)."""
    names = {"source_embedding.weight": lambda get: get(model.source_table.weight)}
    if not model.pre_norm:
        names["target_embedding.weight"] = lambda get: get(model.target_table.weight)
        names["output_embedding.weight"] = lambda get: get(model.generator.weight)
        names["generator.bias"] = lambda get: get(model.generator.bias)

    def both(name, module):
        names[name + ".weight"] = lambda get: get(module.weight)
        names[name + ".bias"] = lambda get: get(module.bias)

    def attention(name, module):
        for i, part in enumerate(("query", "key", "value")):
            names[f"{name}.{part}.weight"] = lambda get, i=i: get(module.in_proj_weight).chunk(3)[i]
            names[f"{name}.{part}.bias"] = lambda get, i=i: get(module.in_proj_bias).chunk(3)[i]
        both(name + ".output", module.out_proj)

    for stack, layers in (("encoder", model.net.encoder.layers), ("decoder", model.net.decoder.layers)):
        for i, layer in enumerate(layers):
            attention(f"{stack}.{i}.self_attention.sublayer.attention", layer.self_attn)
            both(f"{stack}.{i}.self_attention.norm", layer.norm1)
            if stack == "decoder":
                attention(f"{stack}.{i}.cross_attention.sublayer", layer.multihead_attn)
                both(f"{stack}.{i}.cross_attention.norm", layer.norm2)
            both(f"{stack}.{i}.feed_forward.sublayer.linear1", layer.linear1)
            both(f"{stack}.{i}.feed_forward.sublayer.linear2", layer.linear2)
            both(f"{stack}.{i}.feed_forward.norm", layer.norm3 if stack == "decoder" else layer.norm2)
    both("encoder_norm", model.net.encoder.norm)
    both("decoder_norm", model.net.decoder.norm)
    return names


def loss_of(model, logits, targets, smoothing):
    """The mean over the targets that are not -1. Smoothed over all classes, or over all but the padding."""
    rows, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    if not model.pre_norm or smoothing == 0:
        return F.cross_entropy(rows, targets, ignore_index=-1, label_smoothing=smoothing)
    spread = torch.full_like(rows, smoothing / (rows.shape[1] - 1))
    spread[:, PADDING] = 0
    wanted = spread + (1 - smoothing) * F.one_hot(targets.clamp(min=0), rows.shape[1])
    real = targets != -1
    return -(wanted * rows.log_softmax(-1)).sum(-1)[real].sum() / real.sum()


def sentences(vocab, lengths):
    made = torch.full((len(lengths), max(lengths)), PADDING)
    for row, length in enumerate(lengths):
        made[row, :length] = torch.randint(1, vocab, (length,))
    return made


def make(file, pre_norm):
    torch.manual_seed(11)
    model = Transformer(pre_norm)
    source, whole = sentences(SOURCE_VOCAB, (6, 4, 5)), sentences(TARGET_VOCAB, (5, 6, 3))
    tokens, targets = whole[:, :-1], whole[:, 1:].clone()
    targets[targets == PADDING] = -1

    seen = []
    attend = model.net.decoder.layers[-1].multihead_attn
    hook = attend.register_forward_pre_hook(lambda _, arguments: seen.extend(arguments))
    logits = model(source, tokens)
    hook.remove()
    loss = loss_of(model, logits, targets, 0.1)
    assert torch.allclose(loss, loss_of(model, model(source, tokens, True), targets, 0.1), rtol=1e-13)
    loss.backward()
    weights = attend(*seen, key_padding_mask=source == PADDING, average_attn_weights=False)[1]
    names = names_of(model)
    fixture = {name: pick(lambda p: p.detach()).float() for name, pick in names.items()}
    fixture.update({"grad." + name: pick(lambda p: p.grad).clone() for name, pick in names.items()})
    fixture.update(source=source, tokens=tokens, targets=targets, logits=logits.detach(), loss=loss.detach(),
                   plain_loss=loss_of(model, logits, targets, 0.0).detach(), attention=weights.detach())

    fixture["losses"] = adam_losses(model, lambda: loss_of(model, model(source, tokens), targets, 0.1))
    save(in_data(file), fixture)
    print(file, [round(v.item(), 6) for v in fixture["losses"]])


if __name__ == "__main__":
    make("transformer_post_norm.safetensors", False)
    make("transformer_pre_norm.safetensors", True)
