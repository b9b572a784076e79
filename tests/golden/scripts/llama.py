#!/usr/bin/env python3
"""Makes llama/: tiny random Llamas as transformers saves them, and what it computes.

nested/ has rope_parameters in its config, an output table of its own and heads of another width; tokens by a tokenizer.json.
flat/ has the config of transformers 4: rope_theta, and rope_scaling as Llama 3.1; biases everywhere, tied tables; tokens
by sentencepiece's tokenizer.model. expected.safetensors has in float64, computed by transformers on those files, for both:
tokens, targets, logits, loss, some gradients (grad.NAME), and 40 tokens of greedy continuation; words.json has texts and
their tokens, by transformers' tokenizers.

llama.py --check PROGRAM reads those folders with the program xtape, has it write them again (xtape export), and compares
what transformers finds there. Needs torch, transformers and sentencepiece; the tests do not."""
import io, json, os, shutil, subprocess, sys, tempfile

import sentencepiece, torch, torch.nn.functional as F
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from golden import in_data, save
from in_double import in_double

T, B = 11, 2
FOLDER = in_data("llama")
TEXT = ["The quick brown fox jumps over the lazy dog, and it isn't 1234567 times that we've seen it.",
        "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich: 20.000 € für „nichts“!",
        "a stitch in time saves nine, and a rolling stone gathers no moss.\n\n\tReturn  of   the\r\nlines"]
TEXTS = TEXT + ["", " ", "  two  spaces ", "don't DON'T we'll", "12345 1 22", "日本語 und 🙂",
                "naïve — “quoted”", "\n", "tab\there", "x\u1680y\u2003z  \r\n \n !?"]
LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                r"|\s+(?!\S)|\s+")
GRADIENTS = ["model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
             "model.layers.1.self_attn.v_proj.weight", "model.layers.1.mlp.gate_proj.weight", "model.norm.weight",
             "model.layers.0.input_layernorm.weight"]


def folder(name):
    return os.path.join(FOLDER, name)


def byte_level(where):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_WORDS), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False))
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B", special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>").save_pretrained(where)


def sentence_pieces(where):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), model_writer=model, model_type="bpe", vocab_size=340,
                                             byte_fallback=True, character_coverage=1.0, normalization_rule_name="identity",
                                             remove_extra_whitespaces=False, split_digits=True, minloglevel=2)
    with open(os.path.join(where, "tokenizer.model"), "wb") as file:
        file.write(model.getvalue())
    with open(os.path.join(where, "tokenizer_config.json"), "w") as file:
        json.dump({"add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                   "legacy": False, "tokenizer_class": "LlamaTokenizer"}, file, indent=2)


def config(vocabulary, **changes):
    return LlamaConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3, pad_token_id=None, **changes)


def randomised(model):
    # Norms and biases not at their start, so that every term shows.
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() == 1:
                value.add_(0.2 * torch.randn_like(value))
    return model


def make_folders():
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(7)
    nested = config(282, head_dim=6, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500.0},
                    bos_token_id=280, eos_token_id=281)
    randomised(LlamaForCausalLM(nested)).save_pretrained(folder("nested"))
    byte_level(folder("nested"))
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 40}
    flat = config(340, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
                  rope_parameters={"rope_theta": 300.0, **scaling})
    randomised(LlamaForCausalLM(flat)).save_pretrained(folder("flat"))
    path = os.path.join(folder("flat"), "config.json")
    with open(path) as file:
        words = json.load(file)
    del words["rope_parameters"], words["dtype"], words["head_dim"]
    words.update(rope_theta=300.0, rope_scaling=scaling, torch_dtype="float32", transformers_version="4.43.0")
    with open(path, "w") as file:
        json.dump(dict(sorted(words.items())), file, indent=2)
    sentence_pieces(folder("flat"))


def opened(name):
    """The folder's model, that computes in float64 inside in_double()."""
    model = LlamaForCausalLM.from_pretrained(folder(name), dtype=torch.float32, attn_implementation="eager").eval()
    with in_double():
        model = model.double()
        model.model.rotary_emb = LlamaRotaryEmbedding(model.config)
    return model


def expect(name, expected):
    model = opened(name)
    vocabulary = model.config.vocab_size
    tokens, targets = torch.randint(vocabulary, (B, T)), torch.randint(vocabulary, (B, T))
    targets[1, -3:] = -1
    prompt = tokens[:1, :8]
    with in_double():
        logits = model(tokens).logits
        loss = F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1), ignore_index=-1)
        loss.backward()
        text = prompt
        for _ in range(40):
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], 1)
    assert (LlamaForCausalLM.from_pretrained(folder(name))(tokens).logits - logits).abs().max() < 1e-4
    found = {"tokens": tokens, "targets": targets, "logits": logits[:, -2:].detach(), "loss": loss.detach(), "continuation": text[0, 8:]}
    weights = dict(model.named_parameters())
    found.update({"grad." + key.removeprefix("model."): weights[key].grad for key in GRADIENTS})
    expected.update({name + "." + key: value for key, value in found.items()})


def main():
    make_folders()
    expected = {}
    for name in "nested", "flat":
        expect(name, expected)
    save(os.path.join(FOLDER, "expected.safetensors"), expected)
    words = {}
    for name in "nested", "flat":
        tokenizer = AutoTokenizer.from_pretrained(folder(name))
        # transformers 5 takes two spaces in front of a text for one, sentencepiece itself does not.
        texts = [text for text in TEXTS if name == "nested" or not text.startswith(" ")]
        words[name] = [{"text": text, "tokens": tokenizer(text)["input_ids"],
                        "decoded": tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True)} for text in texts]
    with open(os.path.join(FOLDER, "words.json"), "w") as file:
        json.dump(words, file, indent=1, ensure_ascii=False)
    print({key: value.tolist() for key, value in expected.items() if key.endswith(("loss", "continuation"))})


def check(program):
    os.environ.setdefault("XTAPE_MODELS", in_data("../../../models"))
    for name in "nested", "flat":
        with tempfile.TemporaryDirectory() as made:
            written = os.path.join(made, "written")
            subprocess.run([program, "export", folder(name), written], check=True)
            load = lambda where: LlamaForCausalLM.from_pretrained(where, output_loading_info=True, dtype=torch.float32,
                                                                  attn_implementation="eager")
            (model, info), (original, _) = load(written), load(folder(name))
            tokens = torch.randint(model.config.vocab_size, (B, T), generator=torch.Generator().manual_seed(3))
            equal = torch.equal(model.eval()(tokens).logits, original.eval()(tokens).logits)
            wrong = {kind: list(names) for kind, names in info.items() if names}
            same = AutoTokenizer.from_pretrained(written)(TEXT)["input_ids"] == AutoTokenizer.from_pretrained(folder(name))(TEXT)["input_ids"]
            with open(os.path.join(written, "config.json")) as file:
                words = json.load(file)
            print(f"{name}: {sorted(key for key in words if key.startswith('rope'))}, loading: {wrong or 'nothing missing or surplus'}, "
                  f"logits identical: {equal}, tokens identical: {same}")
            if not equal or wrong or not same:
                sys.exit(1)


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else main()
