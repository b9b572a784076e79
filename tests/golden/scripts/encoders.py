#!/usr/bin/env python3
"""Makes encoders/: tiny random BERTs as transformers saves them, and what it computes.

classes/ has three labels, words/ is for masked words, states/ has no head, old/ has the tensors of pre-training under the
names of old files. expected.safetensors has in float64, computed by transformers on those files: tokens (padded), types,
labels, logits (states/: the states and the pooled one), of classes/ also those with types, the losses, and for each
gradient its sums with cos(i) and sin(i) as weights, under the names of the definition.

encoders.py --check PROGRAM reads those folders with the program xtape, has it write them again (xtape export), and
compares what transformers finds there. Needs torch and transformers; the tests do not."""
import json, os, shutil, subprocess, sys, tempfile

import torch, torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, BertModel)

from golden import in_data, save
from in_double import in_double

V, T, B = 64, 9, 3
FOLDER = in_data("encoders")
# Parts of tensor names, and what the definition calls them.
NAMES = {"bert.": "", "encoder.layer": "layers", "attention.output.LayerNorm": "attention_norm",
         "attention.output.dense": "attention.output", "attention.self.": "attention.", "output.LayerNorm": "mlp_norm",
         "intermediate.dense": "mlp.up", "pooler.dense": "pooler", "cls.predictions.transform": "predictions",
         "cls.predictions": "predictions", "LayerNorm": "norm"}
KINDS = {"classes": BertForSequenceClassification, "words": BertForMaskedLM, "states": BertModel, "old": BertForMaskedLM}


def folder(name):
    return os.path.join(FOLDER, name)


def config(**changes):
    return BertConfig(vocab_size=V, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
                      max_position_embeddings=40, initializer_range=0.4, hidden_dropout_prob=0.0,
                      attention_probs_dropout_prob=0.0, **changes)


def make_folders():
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(5)
    labels = dict(id2label={0: "bad", 1: "fair", 2: "good"}, label2id={"bad": 0, "fair": 1, "good": 2})
    for name, model in {"classes": BertForSequenceClassification(config(**labels)), "words": BertForMaskedLM(config()),
                        "states": BertModel(config(hidden_act="relu")), "old": BertForPreTraining(config())}.items():
        with torch.no_grad():  # norms and biases not at their start, so that every term shows
            for value in model.parameters():
                if value.dim() == 1:
                    value.add_(0.2 * torch.randn_like(value))
        model.save_pretrained(folder(name))
    path = os.path.join(folder("old"), "model.safetensors")
    old = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
           for name, value in load_file(path).items()}
    save_file(old | {"bert.embeddings.position_ids": torch.arange(40)[None]}, path, metadata={"format": "pt"})


def opened(name):
    """The folder's model; the names of old files are today's again."""
    with tempfile.TemporaryDirectory() as made:
        shutil.copytree(folder(name), made, dirs_exist_ok=True)
        path = os.path.join(made, "model.safetensors")
        tensors = {key.replace("gamma", "weight").replace("beta", "bias"): value for key, value in load_file(path).items()}
        save_file(tensors, path, metadata={"format": "pt"})
        return KINDS[name].from_pretrained(made, dtype=torch.float32, attn_implementation="eager").eval()


def our_name(name):
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name.replace("output.dense", "mlp.down")


def sums(gradient):
    i = torch.arange(gradient.numel(), dtype=torch.float64)
    return torch.stack([gradient.flatten() @ torch.cos(i), gradient.flatten() @ torch.sin(i)])


def expect(name, expected):
    model = opened(name).double()
    with in_double():
        tokens, types = torch.randint(1, V, (B, T)), torch.randint(2, (B, T))
        tokens[1, 6:], tokens[2, 4:] = 0, 0
        mask = (tokens != 0).long()
        found = {"tokens": tokens, "types": types}
        if name == "states":
            output = model(tokens, attention_mask=mask, token_type_ids=types)
            found.update(states=output.last_hidden_state.detach(), pooled=output.pooler_output.detach())
        else:
            logits = model(tokens, attention_mask=mask).logits
            if name == "classes":
                target = {"label": torch.tensor([2, 0, 1])}
                found["pairs"] = model(tokens, attention_mask=mask, token_type_ids=types).logits.detach()
            else:
                target = {"targets": torch.where((mask == 1) & (torch.rand(B, T) < 0.5), torch.randint(V, (B, T)), -1)}
            classes = logits.shape[-1]
            loss = F.cross_entropy(logits.view(-1, classes), next(iter(target.values())).view(-1), ignore_index=-1)
            loss.backward()
            found.update(target, logits=logits[:, :3].detach(), loss=loss.detach())
            found.update({"grad." + our_name(key): sums(value.grad) for key, value in model.named_parameters()
                          if value.grad is not None})
    expected.update({name + "." + key: value for key, value in found.items()})


def main():
    make_folders()
    expected = {}
    for name in KINDS:
        expect(name, expected)
    save(os.path.join(FOLDER, "expected.safetensors"), expected)
    print({key: value.tolist() for key, value in expected.items() if key.endswith("loss")})


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    tokens = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(3))
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as made:
            written = os.path.join(made, "written")
            subprocess.run([program, "export", folder(name), written], check=True, stdout=subprocess.DEVNULL)
            model, info = kind.from_pretrained(written, output_loading_info=True, dtype=torch.float32,
                                               attn_implementation="eager")
            equal = torch.equal(model.eval()(tokens)[0], opened(name)(tokens)[0])
            wrong = {key: list(names) for key, names in info.items() if names}
            with open(os.path.join(written, "config.json")) as file:
                words = json.load(file)
            print(f"{name}: {words['architectures']}, {words.get('id2label')}, loading: "
                  f"{wrong or 'nothing missing or surplus'}, logits identical: {equal}")
            if not equal or wrong:
                sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
