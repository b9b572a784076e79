#!/usr/bin/env python3
"""Exports networks of PyTorch, torchvision and transformers, with small random weights, by both of PyTorch's exporters
and for several versions of ONNX's operators. For each, NAME.onnx and NAME.safetensors: inputs (input.0 ...), outputs
by ONNX Runtime (output.0 ...), random cotangents (cotangent.0 ...), and PyTorch's gradients of the sum of outputs times
cotangents: of inputs (gradient.0 ...) and of the weights that the file has under the same name
(weight.NAME). usage: onnx_exports.py FOLDER [PATTERN] for all (tests read them from XTAPE_ONNX_EXPORTS), and without a
folder for those that the tests keep. Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime; the
tests do not."""
import fnmatch, pathlib, sys, warnings

import numpy, onnx, onnxruntime, torch, torch.nn as nn, torch.nn.functional as F, torchvision
import transformers as tf

from golden import in_data, save

warnings.simplefilter("ignore")


class Calls(nn.Module):
    """A model with positional inputs and a tuple of outputs."""

    def __init__(self, model, call):
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs):
        return self.call(self.model, *inputs)


class Unet(nn.Module):
    def __init__(self, width=4):
        super().__init__()

        def twice(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.SiLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

        self.down = nn.ModuleList([twice(3, width), twice(width, 2 * width)])
        self.middle = twice(2 * width, 4 * width)
        self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.decode = nn.ModuleList([twice(4 * width, 2 * width), twice(3 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = F.max_pool2d(kept[-1], 2)
        x = torch.cat([self.up(self.middle(x)), kept[1]], 1)
        x = self.decode[0](x)
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.last(self.decode[1](torch.cat([x, kept[0]], 1)))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(4, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, state = self.layers(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


class Experts(nn.Module):
    """Every token goes through the two best of four experts."""

    def __init__(self, d=8, experts=4):
        super().__init__()
        self.router = nn.Linear(d, experts)
        self.first = nn.Parameter(torch.randn(experts, d, 2 * d) / 4)
        self.second = nn.Parameter(torch.randn(experts, 2 * d, d) / 4)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        gates = torch.zeros_like(self.router(x)).scatter(-1, chosen, weights)
        inside = F.gelu(torch.einsum("btd,edf->btef", x, self.first))
        return torch.einsum("btef,efd,bte->btd", inside, self.second, gates)


def ids(*shape):
    return torch.randint(0, 20, shape)


def padded(rows, length):
    """Ids, and a mask that is 0 at the end of the last row."""
    mask = torch.ones(rows, length, dtype=torch.int64)
    mask[-1, -2:] = 0
    return ids(rows, length), mask


SMALL = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, vocab_size=20)


def bert(kind):
    model = tf.BertModel(tf.BertConfig(**SMALL, max_position_embeddings=16, attn_implementation=kind))
    return Calls(model, lambda m, i, k: tuple(m(input_ids=i, attention_mask=k)[:2])), padded(2, 6)


def gpt2(kind):
    model = tf.GPT2LMHeadModel(tf.GPT2Config(n_embd=8, n_layer=2, n_head=2, n_positions=16, vocab_size=20,
                                             attn_implementation=kind))
    return Calls(model, lambda m, i, k: m(input_ids=i, attention_mask=k, use_cache=False).logits), padded(2, 6)


def llama(kind):
    model = tf.LlamaForCausalLM(tf.LlamaConfig(**SMALL, num_key_value_heads=1, max_position_embeddings=32,
                                               attn_implementation=kind))
    return Calls(model, lambda m, i, k: m(input_ids=i, attention_mask=k, use_cache=False).logits), padded(2, 6)


def t5(kind):
    model = tf.T5ForConditionalGeneration(tf.T5Config(d_model=8, d_kv=4, d_ff=12, num_layers=1, num_heads=2,
                                                      vocab_size=20, decoder_start_token_id=0,
                                                      tie_word_embeddings=False, attn_implementation=kind))
    return Calls(model, lambda m, i, d: m(input_ids=i, decoder_input_ids=d, use_cache=False).logits), \
        (ids(2, 6), ids(2, 4))


def vit(kind):
    small = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    model = tf.ViTModel(tf.ViTConfig(**small, image_size=8, patch_size=4, attn_implementation=kind))
    return Calls(model, lambda m, x: m(pixel_values=x).last_hidden_state), (torch.randn(2, 3, 8, 8),)


def whisper(kind):
    model = tf.WhisperForConditionalGeneration(tf.WhisperConfig(
        d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=12, decoder_ffn_dim=12, vocab_size=20, num_mel_bins=4, max_source_positions=8,
        max_target_positions=8, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        attn_implementation=kind))
    return Calls(model, lambda m, x, d, k: m(input_features=x, decoder_input_ids=d, decoder_attention_mask=k,
                                             use_cache=False).logits), (torch.randn(2, 4, 16), *padded(2, 4))


def mixtral(kind):
    model = tf.MixtralForCausalLM(tf.MixtralConfig(**SMALL, num_key_value_heads=1, num_local_experts=4,
                                                   max_position_embeddings=32, attn_implementation=kind,
                                                   experts_implementation="batched_mm"))
    return Calls(model, lambda m, i, k: m(input_ids=i, attention_mask=k, use_cache=False).logits), padded(2, 6)


def image(model, size=32):
    return lambda kind: (model(), (torch.randn(2, 3, size, size),))


def sequence(model):
    return lambda kind: (model(), (torch.randn(2, 5, 4),))


MODELS = {
    "bert": bert, "gpt2": gpt2, "llama": llama, "t5": t5, "vit": vit, "whisper": whisper, "mixtral": mixtral,
    "resnet18": image(lambda: torchvision.models.resnet18(num_classes=7)),
    "mobilenetv2": image(lambda: torchvision.models.mobilenet_v2(num_classes=7, width_mult=0.25)),
    "unet": image(Unet, 8), "lstm": sequence(lambda: Recurrent(nn.LSTM)), "gru": sequence(lambda: Recurrent(nn.GRU)),
    "experts": lambda kind: (Experts(), (torch.randn(2, 5, 8),)),
}
ATTENTION = {"bert", "gpt2", "llama", "vit", "whisper", "mixtral", "t5"}
# Those that the tests keep: small, and of many kinds of graphs.
KEPT = ["bert_script_14_sdpa", "gpt2_dynamo_18_sdpa", "llama_dynamo_23_sdpa", "t5_dynamo_18_eager",
        "whisper_dynamo_20_sdpa", "vit_dynamo_23_sdpa", "gru_script_17_eager", "unet_dynamo_18_eager",
        "lstm_dynamo_18_eager", "experts_dynamo_20_eager"]


def variants():
    for model in MODELS:
        for exporter, opsets in [("script", (11, 14, 17)), ("dynamo", (18, 20, 23))]:
            for opset in opsets:
                for kind in ("eager", "sdpa") if model in ATTENTION else ("eager",):
                    if not (kind == "sdpa" and opset == 11):  # the exporter needs 14
                        yield f"{model}_{exporter}_{opset}_{kind}", model, exporter, opset, kind


def slim(model):
    """Without notes on where nodes come from, which are most of a small file."""
    for graph in [model.graph, *model.functions]:
        del graph.value_info[:]
        for message in [graph, *graph.node, *getattr(graph, "initializer", []), *getattr(graph, "input", [])]:
            for field in ("doc_string", "metadata_props"):
                if hasattr(message, field) and not isinstance(message, str):
                    message.ClearField(field)
    return model


def export(path, model, exporter, opset, kind):
    torch.manual_seed(1)
    network, inputs = MODELS[model](kind)
    network.eval()
    for parameter in network.parameters():  # biases and norms start at 0 and 1, which would hide errors
        parameter.data += torch.randn_like(parameter) * (0.02 if model == "resnet18" else 0.1)
    names = [f"x{i}" for i in range(len(inputs))]
    dynamic = {}
    if exporter == "script":
        dynamic = {"dynamic_axes": {name: {0: "batch"} for name in names}}
    elif model not in ("mixtral", "t5"):  # whose shapes are fixed
        shapes = tuple({0: torch.export.Dim.AUTO} for _ in inputs)
        dynamic = {"dynamic_shapes": (shapes,) if isinstance(network, Calls) else shapes}
    torch.onnx.export(network, inputs, path, opset_version=opset, dynamo=exporter == "dynamo", input_names=names,
                      **(dict(external_data=False, verbose=False) if exporter == "dynamo" else {}), **dynamic)
    onnx.save(slim(onnx.load(path)), path)
    session = onnxruntime.InferenceSession(path)
    found = session.run(None, {given.name: x.numpy() for given, x in zip(session.get_inputs(), inputs)})
    arrays = {f"input.{i}": x for i, x in enumerate(inputs)}
    arrays |= {f"output.{i}": torch.from_numpy(numpy.array(y)) for i, y in enumerate(found)}
    inputs = tuple(x.requires_grad_() if x.is_floating_point() else x for x in inputs)
    outputs = network(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    loss = 0
    for i, y in enumerate(outputs):
        arrays[f"cotangent.{i}"] = torch.randn(y.shape)
        loss = loss + (y * arrays[f"cotangent.{i}"]).sum()
    loss.backward()
    arrays |= {f"gradient.{i}": x.grad for i, x in enumerate(inputs) if x.grad is not None}
    initial = {each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}
    for name, parameter in network.named_parameters():
        # Exporters fold weights into others and keep the names, and give one that is used twice a transposed copy.
        value = parameter.detach().numpy()
        same = name in initial and numpy.array_equal(initial[name], value)
        copied = value.ndim == 2 and any(numpy.array_equal(each, value.T) for each in initial.values())
        if same and not copied and parameter.grad is not None and parameter.numel() < 5000:
            arrays["weight." + name] = parameter.grad
    save(str(path)[:-5] + ".safetensors", {name: x.detach() for name, x in arrays.items()})


folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else in_data("onnx/exports"))
pattern = sys.argv[2] if len(sys.argv) > 2 else "*"
folder.mkdir(parents=True, exist_ok=True)
for name, *how in variants():
    if fnmatch.fnmatch(name, pattern) and (len(sys.argv) > 1 or name in KEPT):
        try:
            export(str(folder / (name + ".onnx")), *how)
            print(name, flush=True)
        except Exception as error:
            (folder / (name + ".onnx")).unlink(missing_ok=True)
            print(name, "failed:", type(error).__name__, str(error)[:300].replace("\n", " "), flush=True)
