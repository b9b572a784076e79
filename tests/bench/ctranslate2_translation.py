#!/usr/bin/env python3
"""The benchmark of translation (translation.cpp) in CTranslate2, with the weights of the same run: a Transformer of
models/transformer.json after xtape's defaults (norm after each residual sum, sinusoidal positions, one table for all
embeddings), on words. Prints the same keys, one JSON line for greedy search and one for a beam of 5.

usage: ctranslate2_translation.py RUN SOURCE [--lines N] [--batch N] [--threads N] [--type float32|int8] [--out FILE]

  --threads  translators of one thread each, which translate batches of their own
  --out      writes the translations with the beam, to compare them with those of `xtape translate`"""
import argparse, glob, gzip, json, os, struct, tempfile, time

import ctranslate2
import numpy as np
from ctranslate2.specs import transformer_spec

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]  # the first tokens of word tokenizers, in their order


def read_weights(path):
    """The arrays of a safetensors file of float32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items()}


def positions(count, width):
    angles = np.arange(count)[:, None] * np.exp(np.arange(width // 2) * (-2 * np.log(10000) / width))
    return np.stack([np.sin(angles), np.cos(angles)], 2).reshape(count, width).astype(np.float32)


def set_linear(linear, weights, *names):
    """One affine map, or several that read the same input, joined."""
    linear.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    linear.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def set_norm(norm, weights, name):
    norm.gamma, norm.beta = weights[f"{name}.norm.weight"], weights[f"{name}.norm.bias"]


def set_layer(layer, weights, name):
    attends = f"{name}.self_attention.sublayer.attention"
    set_linear(layer.self_attention.linear[0], weights, *(f"{attends}.{part}" for part in ("query", "key", "value")))
    set_linear(layer.self_attention.linear[1], weights, f"{attends}.output")
    set_norm(layer.self_attention.layer_norm, weights, f"{name}.self_attention")
    if hasattr(layer, "attention"):
        reads = f"{name}.cross_attention.sublayer"
        set_linear(layer.attention.linear[0], weights, f"{reads}.query")
        set_linear(layer.attention.linear[1], weights, f"{reads}.key", f"{reads}.value")
        set_linear(layer.attention.linear[2], weights, f"{reads}.output")
        set_norm(layer.attention.layer_norm, weights, f"{name}.cross_attention")
    set_linear(layer.ffn.linear_0, weights, f"{name}.feed_forward.sublayer.linear1")
    set_linear(layer.ffn.linear_1, weights, f"{name}.feed_forward.sublayer.linear2")
    set_norm(layer.ffn.layer_norm, weights, f"{name}.feed_forward")


def converted(run, quantization):
    """The run's last checkpoint as a folder of CTranslate2."""
    hyper = json.load(open(f"{run}/definition.json"))["hyper"]
    words = json.load(open(f"{run}/tokenizer.json"))["words"]
    weights = read_weights(sorted(glob.glob(f"{run}/checkpoints/*/weights.safetensors"))[-1])
    table = weights["source_embedding.weight"]
    counts = [sum(1 for name in weights if name.startswith(side) and name.endswith("linear1.bias"))
              for side in ("encoder.", "decoder.")]
    spec = transformer_spec.TransformerSpec.from_config(counts, int(hyper["heads"]), pre_norm=False)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = table
    spec.decoder.projection.bias = np.zeros(len(table), np.float32)
    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.position_encodings.encodings = positions(1024, table.shape[1])
        for i, layer in enumerate(side.layer):
            set_layer(layer, weights, f"{name}.{i}")
    vocabulary = SPECIAL + words + [f"<unused {i}>" for i in range(len(table) - len(SPECIAL) - len(words))]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.add_source_bos = spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = float(hyper["epsilon"])
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder = tempfile.mkdtemp()
    spec.save(folder)
    return folder


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("source")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--type", default="float32", choices=["float32", "int8"])
    parser.add_argument("--out")
    options = parser.parse_args()
    opened = gzip.open if options.source.endswith(".gz") else open
    lines = [line.split() for line in opened(options.source, "rt", encoding="utf-8")][: options.lines]
    translator = ctranslate2.Translator(converted(options.run, options.type), inter_threads=options.threads,
                                        intra_threads=1, compute_type=options.type)
    search = json.load(open(f"{options.run}/recipe.json")).get("search", {})
    for beam in (1, 5):
        start = time.perf_counter()
        made = translator.translate_batch(lines, beam_size=beam, max_batch_size=options.batch, length_penalty=0,
                                          max_decoding_length=search.get("max_length", 256))
        seconds = time.perf_counter() - start
        tokens = sum(len(each.hypotheses[0]) + 1 for each in made)
        print(json.dumps(dict(peer="ctranslate2-" + ctranslate2.__version__, type=options.type, beam=beam,
                              batch=options.batch, sentences=len(lines), seconds=round(seconds, 3),
                              sentences_per_s=round(len(lines) / seconds, 1), tokens_per_s=round(tokens / seconds))),
              flush=True)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as out:
            out.writelines(" ".join(each.hypotheses[0]) + "\n" for each in made)


if __name__ == "__main__":
    main()
