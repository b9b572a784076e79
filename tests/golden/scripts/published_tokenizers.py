#!/usr/bin/env python3
"""Makes tokenizers/: small tokenizers of every kind as Hugging Face's tokenizers saves them, KIND.json, and words.json: texts,
their tokens and what these decode to, by that library. Special tokens in texts are ordinary text. Needs tokenizers and a
folder with texts; the tests do not. usage: published_tokenizers.py FOLDER_OF_TEXTS"""
import gzip, json, os, sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers as n, pre_tokenizers as p, processors, trainers

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "tokenizers")
LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                r"|\s+(?!\S)|\s+")
TEXTS = ["", " ", "Two young, White males are outside.", "Zwei Männer stehen über dem Zaun -- größer!", "e\u0301a\u0323\u0307 \u00e9\u0130\u01c5",
         "👩‍👩‍👧‍👦 🙂\ufe0f 🇩🇪", "日本語と中文。", "ภาษาไทย", "العَرَبِيَّة", "a\u200bb\ufeffc\u00add", "tab\there\r\nand\n\nlines  ",
         "x" * 120, "donaudampfschifffahrtsgesellschaft", "<s>[CLS] [MASK] </s><unk>[UNK]", "ﬁ ① ½ ２ Ⅷ ㌔ ℌ", "don't DON'T we'll 12345 1 22",
         "\u1680x\u180e\u2003y\u3000", "▁a ▁▁ ##ing <0x0A>", "a<new>b <new> new", "\u1100\u1161\u11a8 한국어", "naïve — “quoted” (a/b_c)"]


def save(name, tokenizer, words):
    tokenizer.encode_special_tokens = True
    text = tokenizer.to_str()
    with open(os.path.join(FOLDER, name + ".json"), "w") as file:
        json.dump(json.loads(text), file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")
    rows = []
    for text in TEXTS:
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append({"text": text, "tokens": tokens, "decoded": tokenizer.decode(tokens)})
    pair = tokenizer.encode(TEXTS[2], TEXTS[3])
    words[name] = {"rows": rows, "pair": pair.ids, "types": pair.type_ids, "single": tokenizer.encode(TEXTS[2]).ids}


def bert(lines):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = n.BertNormalizer(lowercase=True)
    t.pre_tokenizer = p.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=260, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def unigram(lines):
    t = Tokenizer(models.Unigram())
    t.normalizer = n.Sequence([n.NFKC(), n.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = p.Sequence([p.WhitespaceSplit(), p.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=200, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def llama2(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    specials = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    t.pre_tokenizer = p.Metaspace()  # for training only
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=400, special_tokens=specials, show_progress=False))
    t.pre_tokenizer = None
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    data = json.loads(t.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(data))


def metaspace(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=False, fuse_unk=False))
    t.pre_tokenizer = p.Sequence([p.Digits(individual_digits=True), p.Punctuation("merged_with_previous"), p.Metaspace(prepend_scheme="first")])
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    t.add_tokens([AddedToken("<new>", lstrip=True, rstrip=True), AddedToken("new", single_word=True)])
    return t


def byte_level(lines):
    t = Tokenizer(models.BPE())
    t.normalizer = n.NFC()
    t.pre_tokenizer = p.Sequence([p.Digits(individual_digits=False), p.Split(Regex(LLAMA3_WORDS), behavior="isolated"),
                                  p.ByteLevel(add_prefix_space=True, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=300, initial_alphabet=sorted(p.ByteLevel.alphabet()), show_progress=False))
    t.add_special_tokens(["<s>", "</s>"])
    t.add_tokens(["<new>"])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
        processors.BertProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))])
    return t


def clip(lines):
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>", continuing_subword_prefix="", unk_token="<unk>"))
    t.normalizer = n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase(), n.Strip()])
    t.pre_tokenizer = p.Whitespace()
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=200, end_of_word_suffix="</w>", special_tokens=["<unk>"], show_progress=False))
    return t


def word_level(lines):
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = p.Whitespace()
    t.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False))
    return t


def main():
    lines = []
    for name in ("train.de.gz", "train.en.gz"):
        with gzip.open(os.path.join(sys.argv[1], name), "rt") as file:
            lines += [next(file).strip() for _ in range(300)]
    os.makedirs(FOLDER, exist_ok=True)
    found = {}
    for make in (bert, unigram, llama2, metaspace, byte_level, clip, word_level):
        save(make.__name__, make(lines), found)
    with open(os.path.join(FOLDER, "words.json"), "w") as file:
        json.dump(found, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
