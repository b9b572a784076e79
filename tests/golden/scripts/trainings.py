"""Golden losses of trainings by PyTorch: makes trainings.json from what the test writes. usage: trainings.py FOLDER

XTAPE_TRAININGS=FOLDER build/tests/golden_test -tc="fifty updates by*" writes the first weights and the batches of each
training. Here each training is a function, which gives the losses of its updates in float64. Needs torch and safetensors;
the tests do not."""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

torch.set_num_threads(1)  # the arrays are small
UPDATES = 50


class Training:
    """The weights w by name, and the batches. Names may be those within a module: self.at("other.")."""

    def __init__(self, name):
        arrays = load_file(os.path.join(sys.argv[1], name + ".safetensors"))
        self.w = {key[8:]: value.requires_grad_() for key, value in arrays.items() if key.startswith("weights.")}
        self.batches = [{key.split(".", 1)[1]: value for key, value in arrays.items() if key.startswith(f"{k}.")}
                        for k in range(UPDATES)]

    def at(self, module):
        return {name[len(module):]: w for name, w in self.w.items() if name.startswith(module)}


class Optimizer:
    """An optimiser of named weights, whose matrices decay, with rates that depend on the number of its updates from 1."""

    def __init__(self, weights, rate, make, decay=0.0, clip=0.0):
        self.weights, self.clip = list(weights.values()), clip
        self.optimizer = make([{"params": [w for w in self.weights if w.dim() >= 2], "weight_decay": decay},
                               {"params": [w for w in self.weights if w.dim() < 2], "weight_decay": 0.0}])
        self.rate, self.updates = rate, 0

    def step(self, loss):
        self.updates += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(self.updates)
        for w, gradient in zip(self.weights, torch.autograd.grad(loss, self.weights)):
            w.grad = gradient
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.weights, self.clip)
        self.optimizer.step()
        for w in self.weights:
            w.grad = None  # other optimisers of these weights must not see it
        return loss.item()


def adam(*betas):
    return lambda groups: torch.optim.Adam(groups, 1.0, betas=betas or (0.9, 0.999))


def adamw(*betas):
    return lambda groups: torch.optim.AdamW(groups, 1.0, betas=betas or (0.9, 0.999))


def warmed(rate, warmup, after):
    """Rises to `rate` at update `warmup`, and then falls from it with the share of the rest that is over."""
    return lambda k: rate * k / warmup if k < warmup else after(rate, (k - warmup) / (UPDATES - warmup))


def cosine(to=0.0):
    return lambda rate, over: to + (rate - to) * (1 + math.cos(math.pi * min(over, 1))) / 2


def every(training, loss, optimizer):
    return [optimizer.step(loss(batch)) for batch in training.batches]


# Layers

def affine(w, name, x):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def layer_norm(w, name, x, epsilon=1e-5):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w.get(name + ".bias"), epsilon)


def rms_norm(w, name, x):
    return F.rms_norm(x, x.shape[-1:], w[name + ".weight"], 1e-6)


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q, k, v, heads, hidden=None, bias=None, scaled=True):
    scores = heads_of(q, heads) @ heads_of(k, heads).transpose(-1, -2)
    scores = scores / math.sqrt(q.shape[-1] // heads) if scaled else scores + (0 if bias is None else bias)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return (scores.softmax(-1) @ heads_of(v, heads)).transpose(1, 2).flatten(2)


def after(t):
    """True where a key is behind the query."""
    return torch.ones(t, t, dtype=torch.bool).triu(1)


def embedded(w, name, tokens):
    return F.embedding(tokens, w[name + ".weight"])


def conv(w, name, x, **options):
    return F.conv2d(x, w[name + ".weight"], w.get(name + ".bias"), **options)


# Networks

def gpt2(w, tokens, gelu="none", heads=2):
    x = embedded(w, "wte", tokens) + w["wpe.weight"][: tokens.shape[1]]
    layers = {name.split(".")[1] for name in w if name.startswith("h.")}
    for i in range(len(layers)):
        part = {name[len(f"h.{i}."):]: each for name, each in w.items() if name.startswith(f"h.{i}.")}
        mapped = lambda name, x: x @ part[name + ".weight"] + part.get(name + ".bias", 0)
        q, k, v = mapped("attn.c_attn", layer_norm(part, "ln_1", x)).chunk(3, -1)
        x = x + mapped("attn.c_proj", attend(q, k, v, heads, after(x.shape[1])))
        x = x + mapped("mlp.c_proj", F.gelu(mapped("mlp.c_fc", layer_norm(part, "ln_2", x)), approximate=gelu))
    return layer_norm(w, "ln_f", x) @ w["wte.weight"].T


def encoder_layer(w, x, heads, hidden, epsilon, norm_first):
    norm = lambda name, x: layer_norm(w, name, x, epsilon)
    y = norm("attention_norm", x) if norm_first else x
    q, k, v = (affine(w, f"attention.{part}", y) for part in ("query", "key", "value"))
    x = x + affine(w, "attention.output", attend(q, k, v, heads, hidden))
    x = x if norm_first else norm("attention_norm", x)
    x = x + affine(w, "mlp.down", F.gelu(affine(w, "mlp.up", norm("mlp_norm", x) if norm_first else x)))
    return x if norm_first else norm("mlp_norm", x)


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-1)


# Trainings

def gan(training):
    critic, generator = training.at("critic."), training.at("generator.")

    def perceptron(w, x):
        x = F.leaky_relu(affine(w, "fc1", x), 0.2)
        return affine(w, "fc3", F.leaky_relu(affine(w, "fc2", x), 0.2))

    def critic_loss(batch, penalty):
        real, fake = batch["images"].flatten(1), perceptron(generator, batch["noise"]).detach()
        between = (batch["share"] * real + (1 - batch["share"]) * fake).requires_grad_()
        slope, = torch.autograd.grad(perceptron(critic, between).sum(), between, create_graph=True)
        far = ((slope.norm(dim=1) - 1) ** 2).mean()
        return perceptron(critic, fake).mean() - perceptron(critic, real).mean() + penalty * far

    def generator_loss(batch):
        return -perceptron(critic, perceptron(generator, batch["noise"])).mean()

    return critic, generator, critic_loss, generator_loss


def wgan_gp(training):
    critic, generator, critic_loss, generator_loss = gan(training)
    of_critic = Optimizer(critic, lambda k: 0.01, adam(0.0, 0.9), clip=0.5)
    last = sum(k % 3 == 2 for k in range(UPDATES))
    of_generator = Optimizer(generator, lambda k: 0.05 * (1 - k / last), lambda groups: torch.optim.SGD(groups, 1.0, momentum=0.5))
    return [of_generator.step(generator_loss(batch)) if k % 3 == 2 else of_critic.step(critic_loss(batch, 2.0))
            for k, batch in enumerate(training.batches)]


def wgan_gp_simultaneous(training):
    critic, generator, critic_loss, generator_loss = gan(training)
    optimizer = torch.optim.Adam([*critic.values(), *generator.values()], 0.01, betas=(0.0, 0.9))
    losses = []
    for batch in training.batches:
        both = critic_loss(batch, 10.0), generator_loss(batch)
        for loss, weights in zip(both, (critic, generator)):
            for w, gradient in zip(weights.values(), torch.autograd.grad(loss, list(weights.values()))):
                w.grad = gradient
        optimizer.step()
        losses.append((both[0] + both[1]).item())
    return losses


def dpo(training):
    policy = {name: w for name, w in training.w.items() if not name.startswith("other.")}

    def log_probability(w, tokens, targets):
        chosen = gpt2(w, tokens, "tanh").log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
        return (chosen * (targets >= 0)).sum(1)

    def gain(batch, answer):
        given = batch[answer + "_tokens"], batch[answer + "_targets"]
        return log_probability(policy, *given) - log_probability(training.at("other."), *given).detach()

    def loss(batch):
        return -F.logsigmoid(0.1 * (gain(batch, "chosen") - gain(batch, "rejected"))).mean()

    return every(training, loss, Optimizer(policy, warmed(0.01, 20, cosine()), adamw(0.9, 0.99), clip=1.0))


def distillation(training):
    student = {name: w for name, w in training.w.items() if not name.startswith("other.")}

    def loss(batch):
        tokens, targets = batch["tokens"], batch["targets"]
        y, teacher = gpt2(student, tokens), gpt2(training.at("other."), tokens).detach()
        soft = F.kl_div((y / 2).log_softmax(-1).flatten(0, 1), (teacher / 2).softmax(-1).flatten(0, 1), reduction="batchmean")
        return 0.5 * 4 * soft + 0.5 * cross_entropy(y, targets)

    return every(training, loss, Optimizer(student, warmed(1e-3, 5, cosine(1e-4)), adamw(0.9, 0.99), 0.1, 1.0))


def clip(training):
    w, image, text = training.w, training.at("image."), training.at("text.")

    def of_images(images):
        x = F.gelu(conv(image, "conv1", images, padding=1))
        return F.normalize(affine(image, "fc", F.gelu(conv(image, "conv2", x, padding=1, stride=2)).flatten(1)), dim=-1)

    def of_texts(tokens):
        x = embedded(text, "words", tokens) + text["places.weight"][: tokens.shape[1]]
        x = encoder_layer(training.at("text.layers.0."), x, 2, (tokens == 0)[:, None, None], 1e-5, True)
        valid = (tokens != 0)[..., None]
        return F.normalize(affine(text, "fc", (layer_norm(text, "norm", x) * valid).sum(1) / valid.sum(1)), dim=-1)

    def loss(batch):
        y, own = w["scale"].exp() * of_images(batch["images"]) @ of_texts(batch["tokens"]).T, torch.arange(len(batch["tokens"]))
        return (F.cross_entropy(y, own) + F.cross_entropy(y.T, own)) / 2

    return every(training, loss, Optimizer(w, warmed(2e-3, 5, cosine()), adamw(), 0.1, 1.0))


def packed_chats(training):
    def loss(batch):
        """Each chat is read alone."""
        total, count = 0, 0
        for tokens, targets, segments in zip(batch["tokens"], batch["targets"], batch["segments"]):
            for segment in range(segments.max() + 1):
                own = segments == segment
                total = total + cross_entropy(gpt2(training.w, tokens[own][None], "tanh"), targets[own][None]) * (targets[own] >= 0).sum()
                count += (targets[own] >= 0).sum()
        return total / count

    return every(training, loss, Optimizer(training.w, warmed(2e-3, 5, cosine(2e-4)), adamw(0.9, 0.99), 0.1, 1.0))


def masked_lm(training):
    w = training.w

    def loss(batch):
        tokens, embeddings = batch["tokens"], training.at("embeddings.")
        x = embedded(embeddings, "word_embeddings", tokens) + embeddings["position_embeddings.weight"][: tokens.shape[1]]
        x = layer_norm(embeddings, "norm", x + embeddings["token_type_embeddings.weight"][0], 1e-12)
        x = encoder_layer(training.at("layers.0."), x, 2, (tokens == 0)[:, None, None], 1e-12, False)
        x = layer_norm(w, "predictions.norm", F.gelu(affine(w, "predictions.dense", x)), 1e-12)
        return cross_entropy(x @ w["embeddings.word_embeddings.weight"].T + w["predictions.bias"], batch["targets"])

    return every(training, loss, Optimizer(w, warmed(1e-3, 5, lambda rate, over: rate * (1 - over)), adamw(0.9, 0.98), 0.01, 1.0))


def span_corruption(training):
    """T5, whose attention scores are not scaled, and have a bias for each distance."""
    w, buckets = training.w, 32

    def bucket(distance, both_ways):
        count = buckets // 2 if both_ways else buckets
        far = abs(distance) if both_ways else max(-distance, 0)
        if far >= count // 2:
            shared = math.log(far / (count // 2)) / math.log(128 / (count // 2)) * (count - count // 2)
            far = min(count // 2 + int(shared + 1e-9), count - 1)
        return far + (count if both_ways and distance > 0 else 0)

    def bias(name, t, both_ways):
        of = torch.tensor([[bucket(key - query, both_ways) for key in range(t)] for query in range(t)])
        return w[name + ".weight"][of].permute(2, 0, 1)

    def attention(part, x, memory, hidden, bias):
        q, k, v = (affine(w, f"{part}.{name}", of) for name, of in (("query", x), ("key", memory), ("value", memory)))
        return affine(w, part + ".output", attend(q, k, v, 2, hidden, bias, scaled=False))

    def layer(part, x, hidden, bias, memory=None, padding=None):
        y = rms_norm(w, part + ".self_attention.norm", x)
        x = x + attention(part + ".self_attention.sublayer.attention", y, y, hidden, bias)
        if memory is not None:
            x = x + attention(part + ".cross_attention.sublayer", rms_norm(w, part + ".cross_attention.norm", x), memory, padding, None)
        y = F.relu(affine(w, part + ".feed_forward.sublayer.wi", rms_norm(w, part + ".feed_forward.norm", x)))
        return x + affine(w, part + ".feed_forward.sublayer.wo", y)

    def loss(batch):
        source, tokens = batch["source"], batch["tokens"]
        padding, (s, t) = (source == 0)[:, None, None], (source.shape[1], tokens.shape[1])
        memory = rms_norm(w, "encoder_norm", layer("encoder.0", embedded(w, "table", source), padding, bias("encoder_bias", s, True)))
        x = layer("decoder.0", embedded(w, "table", tokens), after(t), bias("decoder_bias", t, False), memory, padding)
        x = rms_norm(w, "decoder_norm", x) * x.shape[-1] ** -0.5
        return cross_entropy(x @ w["table.weight"].T, batch["targets"])

    return every(training, loss, Optimizer(w, warmed(2e-3, 5, cosine()), adamw(0.9, 0.98), 0.01, 1.0))


def ddpm(training):
    w, layer = training.w, training.at("layers.0.")
    kept_after = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 20, dtype=torch.float64), 0)
    norm = lambda w, name, x: F.silu(F.group_norm(x, 2, w[name + ".weight"], w[name + ".bias"]))

    def predicted(x, step):
        angle = step[:, None] * 10000.0 ** (-torch.arange(2, dtype=torch.float64) / 2)
        time = affine(w, "step2", F.silu(affine(w, "step1", torch.cat((angle.sin(), angle.cos()), 1))))
        x = conv(w, "first", x, padding=1)
        y = conv(layer, "conv1", norm(layer, "norm1", x), padding=1) + affine(layer, "step", F.silu(time))[..., None, None]
        x = x + conv(layer, "conv2", norm(layer, "norm2", y), padding=1)
        return conv(w, "last", norm(w, "norm", x), padding=1)

    def loss(batch):
        kept = kept_after[batch["step"]][:, None, None, None]
        x = kept.sqrt() * batch["images"] + (1 - kept).sqrt() * batch["noise"]
        return F.mse_loss(predicted(x, batch["step"]), batch["noise"])

    return every(training, loss, Optimizer(w, warmed(1e-3, 5, lambda rate, over: rate), adam(), clip=1.0))


def vq_vae(training):
    w = training.w
    counts, sums = w.pop("codebook.counts").detach(), w.pop("codebook.sums").detach()

    def loss(batch):
        nonlocal counts, sums
        x = F.relu(conv(w, "conv2", F.relu(conv(w, "conv1", batch["images"], padding=1)), padding=1, stride=2))
        x = conv(w, "conv3", x)
        flat = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
        smooth = (counts + 1e-5) / (counts.sum() + len(counts) * 1e-5) * counts.sum()
        codes = sums / smooth[:, None]
        number = torch.cdist(flat.detach(), codes).argmin(1)
        chosen = F.one_hot(number, len(codes)).double()
        counts = 0.9 * counts + 0.1 * chosen.sum(0)
        sums = 0.9 * sums + 0.1 * chosen.T @ flat.detach()
        passed = flat + (codes[number] - flat).detach()
        y = affine(w, "fc2", F.relu(affine(w, "fc1", passed.reshape(len(x), -1))))
        return F.mse_loss(y, batch["images"].flatten(1)) + 0.25 * F.mse_loss(flat, codes[number])

    return every(training, loss, Optimizer(w, warmed(2e-3, 5, cosine()), adam()))


def tasks(training):
    """The two losses train the convolutions by one optimiser. Its moments of a weight do not move while no loss trains it."""
    w = {name: each for name, each in training.w.items() if "running" not in name}
    rate = warmed(5e-3, 5, cosine())

    def features(images):
        for i in "12":
            x = conv(w, "conv" + i, images, padding=1)
            x = F.batch_norm(x, None, None, w[f"bn{i}.weight"], w[f"bn{i}.bias"], training=True)
            images = F.max_pool2d(F.relu(x), 2)
        return images

    def label_loss(batch):
        return F.cross_entropy(affine(w, "fc", features(batch["images"]).flatten(1)), batch["label"])

    def drawing_loss(batch):
        return F.mse_loss(F.pixel_shuffle(conv(w, "draw", features(batch["images"])), 4), batch["images"])

    optimizer, losses = Optimizer(w, rate, adamw(), 0.01), []
    for k, batch in enumerate(training.batches):
        loss, other = (drawing_loss, "fc.") if k % 3 == 1 else (label_loss, "draw.")
        optimizer.weights = [each for name, each in w.items() if not name.startswith(other)]
        losses.append(optimizer.step(loss(batch)))
    return losses


def language_model(training, rate):
    loss = lambda batch: cross_entropy(gpt2(training.w, batch["tokens"]), batch["targets"])
    return every(training, loss, Optimizer(training.w, rate, adamw(0.9, 0.99), 0.1, 1.0))


def stages(training):
    """The rate rises along a line, stays, and falls along a cosine: for 15, 15 and 20 updates."""
    assert [batch["tokens"].shape for batch in training.batches] == [(4, 4)] * 15 + [(3, 8)] * 15 + [(2, 12)] * 20
    return language_model(training, lambda k: 0.02 * k / 15 if k <= 15 else 0.02 if k <= 30 else cosine(0.001)(0.02, (k - 30) / 20))


def restarts(training):
    """Warms up for five updates. The schedule after that is PyTorch's."""
    sgd = torch.optim.SGD([torch.zeros(1)], 0.02)
    schedule, rates = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd, 8, 2, eta_min=0.001), []
    for _ in range(UPDATES - 5):
        rates.append(schedule.get_last_lr()[0])
        sgd.step()
        schedule.step()
    return language_model(training, lambda k: 0.02 * k / 5 if k <= 5 else rates[k - 6])


TRAININGS = (wgan_gp, wgan_gp_simultaneous, dpo, distillation, clip, packed_chats, masked_lm, span_corruption, ddpm, vq_vae,
             tasks, stages, restarts)
path = os.path.join(os.path.dirname(__file__), "..", "data", "trainings.json")
with open(path, "w") as file:
    json.dump({each.__name__: each(Training(each.__name__)) for each in TRAININGS}, file, indent=0)
    file.write("\n")
