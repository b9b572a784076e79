"""Golden BLEU scores and 13a words, from sacreBLEU. Makes bleu.json again: bleu.py ENGLISH_LINES.gz

The references are lines of Multi30k's English test set (test_2016_flickr), the hypotheses what chance makes of them."""
import gzip
import json
import os
import random
import sys

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

chance = random.Random(7)


def worsened(line):
    words = line.split()
    kind = chance.randrange(7)
    if kind == 0:
        del words[chance.randrange(len(words))]
    elif kind == 1:
        i = chance.randrange(len(words) - 1)
        words[i], words[i + 1] = words[i + 1], words[i]
    elif kind == 2:
        words = [w.upper() if chance.random() < 0.3 else w for w in words]
    elif kind == 3:
        words[-1] = words[-1].rstrip(".") + chance.choice([" .", "!", "", "...", " ;"])
    elif kind == 4:
        words[chance.randrange(len(words))] = chance.choice(["the", "man", "a", "red", "(sic)", "\"dog\""])
    elif kind == 5:
        words = words[:len(words) // 2] + words[len(words) // 2 + 1:] + words[:2]
    return " ".join(words)


NASTY = [  # (hypothesis, reference)
    ('He said &quot;no&quot; &amp; left.', 'He said "no" & left.'),
    ('It cost 1,000.50 dollars, or 1.000,50 euros.', 'It cost 1,000.5 dollars, or 1.000,50 euros.'),
    ('A well-known 10-year-old T-shirt, size 3-4.', 'A well-known 10-year-old t-shirt, size 3 - 4.'),
    ('', 'An empty hypothesis.'),
    ('   ', 'A blank hypothesis.'),
    ('There is no reference.', ''),
    ('„Ja“, sagte sie … und ging—ohne Gruß.', '"Ja", sagte sie ... und ging - ohne Gruß.'),
    ('She\'s here; it\'s theirs: $5 (50%)!', "She 's here ; it 's theirs : $ 5 ( 50 % ) !"),
    ('Ärger ÜBER Élan, ΠΟΛΥ Жизнь', 'ärger über élan, πολυ жизнь'),
    ('non\u00a0breaking\u3000spaces\u2009here', 'non breaking spaces here'),
    ('&lt;b&gt;bold&lt;/b&gt; <skipped>text &amp;quot;', '<b>bold</b> text &quot;'),
    ('...,,.., .5 5. 5.5 ,5, a.b.c. U.S.A.', '. . . , , .5 5. 5.5 ,5, a.b.c. U.S.A.'),
    ('the the the the the the the', 'the cat is on the mat'),
    ('a', 'a'),
]

LINES = [line for pair in NASTY for line in pair] + [
    "x.", ".x", "x,y", "1,2", "1.x", "x.1", "1-2", "x-1", "1-x", "-1", "--", "5--6", "9.-", "é.é", ".é", "é,1", "1,é",
    "1-é", "a_b@c.de", "http://a.b/c?d=e&f=g", "[x]{y}|z~", "`x' ^\\", "#1 *2 +3 =4", "tab\there", "\u20ac5.00-6", "😀.😀,😀",
    "1..2", "1.,2", "x..y", ". . .", ",1.", "'tis", "rock'n'roll", "&amp;amp;", "&nbsp;", "a&b", "100%", "No.1,No.2"]


def score(hypotheses, references, tokenize, lowercase):
    bleu = BLEU(tokenize=tokenize, lowercase=lowercase).corpus_score(hypotheses, [references])
    return {"tokenize": tokenize, "lowercase": lowercase, "score": bleu.score, "precisions": bleu.precisions,
            "brevity_penalty": bleu.bp, "hypothesis_length": bleu.sys_len, "reference_length": bleu.ref_len}


with gzip.open(sys.argv[1], "rt", encoding="utf-8") as file:
    english = [line.rstrip("\n") for line in file][:40]
pairs = [(worsened(line), line) for line in english]
corpora = {
    "captions": pairs,
    "nasty lines": NASTY,
    "both": pairs + NASTY,
    "short of the reference": [(h[:len(h) // 2], r) for h, r in pairs[:10]],
    "no four words match": [("a b c x d e y", "a b c z d e f"), ("g h", "h g")],
    "only single words match": [("a b c d e", "e d c b a")],
    "nothing matches": [("a b c d e", "v w x y z")],
    "fewer than four words": [("a b c", "a b c"), ("d", "d")],
    "nothing was said": [("", "a b"), ("", "c d")],
    "the same": [(line, line) for line in english[:5]],
}
result = {"sacrebleu": sacrebleu.__version__, "corpora": [], "lines": []}
for name, lines in corpora.items():
    hypotheses, references = [h for h, _ in lines], [r for _, r in lines]
    result["corpora"].append({"name": name, "hypotheses": hypotheses, "references": references, "scores": [
        score(hypotheses, references, tokenize, lowercase) for tokenize in ("13a", "none")
        for lowercase in (False, True)]})
tokenizer = Tokenizer13a()
for line in LINES:
    result["lines"].append({"line": line, "words": tokenizer(line.rstrip()).split()})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "bleu.json"), "w", encoding="utf-8") as file:
    json.dump(result, file, ensure_ascii=False, indent=1)
    file.write("\n")
