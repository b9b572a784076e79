#!/usr/bin/env python3
"""Makes t5/: tiny random T5s as transformers saves them, and what it computes.

relu/ is as T5 was published first, with one table and tokens by spiece.model; gated/ as T5 1.1, in the words of
transformers 4, with an output table of its own. expected.safetensors has in float64, computed by transformers on those
files, for both: source (padded), tokens, targets, logits, loss, some gradients (grad.NAME), and for each row of the source
20 tokens of greedy continuation without padding; words.json has texts and their tokens, by transformers' tokenizer, and translations.

t5.py --check PROGRAM reads those folders with the program xtape, has it write them again (xtape export), and compares
what transformers finds there. Needs torch, transformers and sentencepiece; the tests do not."""
import io, json, os, shutil, subprocess, sys, tempfile

import sentencepiece, torch, torch.nn.functional as F
from safetensors.torch import save_file
from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

from golden import in_data, save
from in_double import in_double

S, T, B, V = 26, 25, 2, 64
FOLDER = in_data("t5")
LINES = ["a rolling stone gathers no moss", "a stitch in time saves nine", "the quick brown fox jumps over the lazy dog",
         "translate English to German: the house is small", "pack my box with five dozen liquor jugs"]
TEXTS = LINES + ["", " ", "  two  spaces ", "Q? 12!", "ünknown"]
GRADIENTS = ["shared.weight", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
             "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "encoder.block.1.layer.0.SelfAttention.k.weight",
             "decoder.block.1.layer.1.EncDecAttention.v.weight", "decoder.block.0.layer.2.layer_norm.weight",
             "encoder.block.0.layer.1.DenseReluDense.wo.weight", "decoder.final_layer_norm.weight"]


def folder(name):
    return os.path.join(FOLDER, name)


def config(**changes):
    return T5Config(vocab_size=V, d_model=16, d_kv=6, d_ff=20, num_layers=2, num_heads=3, decoder_start_token_id=0, **changes)


def randomised(model):
    # Norms not at their start, and biases and scores that matter, so that every term shows.
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() == 1:
                value.add_(0.2 * torch.randn_like(value))
            if "relative_attention_bias" in name or name.endswith((".q.weight", "wi.weight", "wi_0.weight")):
                value.mul_(3)
        if model.config.scale_decoder_outputs:
            model.shared.weight.mul_(0.2)  # else a token is followed by itself
    return model


def sentence_pieces(where):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=model, vocab_size=60, pad_id=0, eos_id=1,
                                             unk_id=2, bos_id=-1, character_coverage=1.0, normalization_rule_name="identity", hard_vocab_limit=False, minloglevel=2)
    with open(os.path.join(where, "spiece.model"), "wb") as file:
        file.write(model.getvalue())
    with open(os.path.join(where, "tokenizer_config.json"), "w") as file:
        json.dump({"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "extra_ids": 0, "legacy": False,
                   "tokenizer_class": "T5Tokenizer"}, file, indent=2)


def make_folders():
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(5)
    randomised(T5ForConditionalGeneration(config())).save_pretrained(folder("relu"))
    sentence_pieces(folder("relu"))
    gated = randomised(T5ForConditionalGeneration(config(
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_decoder_layers=3, relative_attention_num_buckets=8, relative_attention_max_distance=20)))
    gated.save_pretrained(folder("gated"))
    tensors = {name: value.detach().clone() for name, value in gated.named_parameters()}
    tensors["lm_head.weight"] = torch.randn(V, 16)
    tensors["encoder.embed_tokens.weight"] = tensors["decoder.embed_tokens.weight"] = tensors["shared.weight"].clone()
    tensors["decoder.embed_tokens.weight"] = tensors["shared.weight"].clone()
    save_file(tensors, os.path.join(folder("gated"), "model.safetensors"), metadata={"format": "pt"})
    path = os.path.join(folder("gated"), "config.json")
    with open(path) as file:
        words = json.load(file)
    for key in "dtype", "is_decoder", "scale_decoder_outputs":
        words.pop(key, None)
    words.update(tie_word_embeddings=False, torch_dtype="float32", transformers_version="4.43.0")
    with open(path, "w") as file:
        json.dump(dict(sorted(words.items())), file, indent=2)


def opened(name):
    model = T5ForConditionalGeneration.from_pretrained(folder(name), dtype=torch.float32, attn_implementation="eager").eval()
    return model.double()


def expect(name, expected):
    model = opened(name)
    source, tokens, targets = torch.randint(2, V, (B, S)), torch.randint(2, V, (B, T)), torch.randint(2, V, (B, T))
    source[1, -9:] = 0
    tokens[:, 0] = 0
    targets[1, -3:] = -1
    mask = (source != 0).long()
    with in_double():
        compute = lambda tokens: model(input_ids=source, attention_mask=mask, decoder_input_ids=tokens).logits
        logits = compute(tokens)
        loss = F.cross_entropy(logits.view(-1, V), targets.view(-1), ignore_index=-1)
        loss.backward()
        text = tokens[:, :1]
        for _ in range(20):
            text = torch.cat([text, compute(text)[:, -1:, 1:].argmax(-1) + 1], 1)  # padding is never generated
    plain = T5ForConditionalGeneration.from_pretrained(folder(name), attn_implementation="eager").eval()
    assert (plain(input_ids=source, attention_mask=mask, decoder_input_ids=tokens).logits - logits).abs().max() < 1e-3
    found = {"source": source, "tokens": tokens, "targets": targets, "logits": logits[:, [0, 1, -2, -1]].detach(), "loss": loss.detach(),
             "continuation": text[:, 1:]}
    weights = dict(model.named_parameters())
    found.update({"grad." + key: weights[key].grad for key in GRADIENTS})
    expected.update({name + "." + key: value for key, value in found.items()})


def main():
    make_folders()
    expected = {}
    for name in "relu", "gated":
        expect(name, expected)
    save(os.path.join(FOLDER, "expected.safetensors"), expected)
    tokenizer = AutoTokenizer.from_pretrained(folder("relu"))
    model = T5ForConditionalGeneration.from_pretrained(folder("relu")).eval()
    words = []
    for text in TEXTS:
        tokens = tokenizer(text)["input_ids"]
        made = model.generate(torch.tensor([tokens]), do_sample=False, num_beams=1, max_new_tokens=12, suppress_tokens=[0])[0]
        words.append({"text": text, "tokens": tokens, "decoded": tokenizer.decode(tokens, skip_special_tokens=True),
                      "translation": tokenizer.decode(made, skip_special_tokens=True), "produced": made.tolist()})
    with open(os.path.join(FOLDER, "words.json"), "w") as file:
        json.dump(words, file, indent=1, ensure_ascii=False)
    print({key: value.tolist() for key, value in expected.items() if key.endswith(("loss", "continuation"))})


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    for name in "relu", "gated":
        with tempfile.TemporaryDirectory() as made:
            written = os.path.join(made, "written")
            subprocess.run([program, "export", folder(name), written], check=True)
            load = lambda where: T5ForConditionalGeneration.from_pretrained(where, output_loading_info=True, dtype=torch.float32,
                                                                            attn_implementation="eager")
            (model, info), (original, _) = load(written), load(folder(name))
            tokens = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(3))
            compute = lambda model: model.eval()(input_ids=tokens, decoder_input_ids=tokens).logits
            equal = torch.equal(compute(model), compute(original))
            wrong = {kind: list(names) for kind, names in info.items() if names}
            print(f"{name}: loading: {wrong or 'nothing missing or surplus'}, logits identical: {equal}")
            if not equal or wrong:
                sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
