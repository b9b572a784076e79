"""Golden tokens of GPT-2's tokenizer, from Hugging Face's tokenizers, which tiktoken must agree with. Makes
gpt2_tokenizer.json and the small vocabulary in gpt2_small again: gpt2_tokenizer.py DIRECTORY

The directory has the vocab.json and merges.txt that were published with GPT-2. The small vocabulary is trained here on a
few sentences."""
import json
import os
import random
import sys

import tiktoken
import tokenizers
from tokenizers import ByteLevelBPETokenizer

END = "<|endoftext|>"
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data")
small = os.path.join(here, "gpt2_small")

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't care: it's asleep in the warm sun.",
    "A tape records every operation in the order in which it was called; the gradient walks back over it.",
    "We've seen 1234 numbers, 56 words and 789 marks; they're all there, aren't they? I'd say so, and she'll agree.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche, und über ihnen fliegen Vögel.",
    "Deux jeunes hommes sont à l'extérieur, près de beaucoup de buissons; où sont-ils passés, déjà?",
    "В чащах юга жил бы цитрус? Да, но фальшивый экземпляр!",
    "int main() {\n    for (int i = 0; i < 10; ++i) {\n        print(i);\n    }\n}\n",
    "the other then there these those this that with within without which while when where whether",
]

TEXTS = [
    "", " ", "  ", "a", " a", "a ", "  a  b   c    ", "Hello, world!", "hello world\n", "\n", "\n\n", "\n\n a", " \n \n ",
    "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n",
    # contractions: of ASCII's apostrophe and lower case alone
    "I'm you're he's we've they'll I'd can't", "I'M YOU'RE HE'S WE'VE THEY'LL I'D CAN'T", "I\u2019m you\u2019re it\u2018s",
    "'s't're've'm'll'd", "''s '' ' s 'tis o'clock rock'n'roll's", "'Sd 'lll 'rer 'vex 'dd", "it's's", " 's", "\n's", "1's 's1",
    # spaces of all kinds
    "a\tb\t\tc\t", "a\r\nb\r\n\r\nc\r", "a\x0bb\x0cc", "a\x1cb\x1dc\x1ed\x1fe", "a\x1c\x1d b", "a\u0085b\u0085\u0085c",
    "a\u00a0b\u00a0\u00a0c", "a \u00a0 b", "a\u1680b", "a\u180eb \u180e", "\u2000\u2001\u2002a\u2003\u2004b\u2005\u2006\u2007c",
    "a\u2008\u2009\u200ab", "a\u200bb \u200b c", "a\u2028b\u2029c", "a\u202fb\u205fc", "a\u3000b\u3000\u3000c\u3000", "a\ufeffb",
    "a\u2060b", " " * 100 + "x", "\t" * 33, "x" + " \t" * 20 + "\n" * 7 + "y", "        if x:\n            return\n",
    # numbers
    "0 1 12 123 1234 12345 123456789012345", "3.14159 1,000,000 1e-9 0x7f", "x1y2 3z", "\u0661\u0662\u0663 \u0967\u0968\u0969",
    "\u00b2\u00b3\u00bd \u2167 \u2460\u2461 \u3007\u4e00", "\uff11\uff12\uff13", "\U0001d7d8\U0001d7d9 \U000104a0", "10\u00b0 5\u20ac 50%",
    # letters and marks on them
    "na\u00efve caf\u00e9 r\u00e9sum\u00e9", "nai\u0308ve cafe\u0301", "Z\u0351\u036b\u0343a\u0302\u0303l\u0300g\u0323o", "\u0301\u0302 \u0303",
    "Stra\u00dfe \u1e9e \u0130stanbul \u01c5 \u02b0 \u00aa\u00ba", "\u0388\u03bb\u03bb\u03b7\u03bd\u03b5\u03c2 \u0420\u0443\u0441\u0441\u043a\u0438\u0439",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f\u30ab\u30bf\u30ab\u30ca\u30fc", "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0650\u0633\u0652\u0645\u0650", "\u200fabc\u200e \u202eabc\u202c",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0f56\u0f7c\u0f51", "\U00020000\U0002a6d6 \U00010330\U00010331",
    # emoji
    "\U0001f600 \U0001f600\U0001f601", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea\U0001f1e7\U0001f1f7",
    "\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", "I \u2764 NY\u2122",
    # control bytes and other marks
    "".join(map(chr, range(0x20))), "a\x00b\x00\x00c", "\x7f\x80\x81\x9f", "\ufffd \uffff \U0010ffff \ue000", "\u00ad\u00a1\u00bf",
    "!!!???...---___***", "a_b __c__ d-e", " !a ?b .c", "<|endoftext|>", "a<|endoftext|>b", "<|endoftext|", "{\"a\": [1, 2.5, null]}",
    "https://example.org/a?b=c&d=%20#e", "x=y+z;//comment\r\n/* more */", "$\\frac{a}{b}$ \u2211\u222b\u221a \u2190\u2192",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "hahahahahahahahahaha", "=" * 65, "abc" * 100, "\u00e9" * 50, "the" * 40,
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
]


def tiktoken_of(directory):
    """The same tokenizer, by tiktoken: its ranks are the vocabulary's numbers."""
    with open(os.path.join(directory, "vocab.json"), encoding="utf-8") as file:
        vocabulary = json.load(file)
    printed = [b for b in range(256) if 0x20 < b < 0x7f or b > 0xa0 and b != 0xad]
    byte_of = {chr(b): b for b in printed}
    byte_of.update({chr(0x100 + i): b for i, b in enumerate(b for b in range(256) if b not in printed)})
    end = vocabulary.pop(END)
    with open(os.path.join(directory, "merges.txt"), encoding="utf-8") as file:
        merged = [line.rstrip("\n").replace(" ", "") for line in file][1:]
    numbers = {}  # single bytes, then merges: tiktoken takes the order for that of the merges
    for rank, piece in enumerate([c for c in vocabulary if len(c) == 1] + merged):
        numbers[rank] = vocabulary[piece]
    ranks = {bytes(byte_of[c] for c in piece): rank
             for rank, piece in enumerate([c for c in vocabulary if len(c) == 1] + merged)}
    encoding = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: len(ranks)})
    numbers[len(ranks)] = end
    return lambda text, special: [numbers[t] for t in
                                  encoding.encode(text, allowed_special={END} if special else set(), disallowed_special=())]


def cases(directory, texts):
    """The tokens of every text, and those where the end's name is the end."""
    files = [os.path.join(directory, name) for name in ("vocab.json", "merges.txt")]
    plain = ByteLevelBPETokenizer(*files)
    special = ByteLevelBPETokenizer(*files)
    special.add_special_tokens([END])
    other = tiktoken_of(directory)
    result = []
    for text in texts:
        case = {"text": text, "tokens": plain.encode(text).ids}
        assert other(text, False) == case["tokens"], text
        if END in text:
            case["with_end"] = special.encode(text).ids
            assert other(text, True) == case["with_end"], text
        assert plain.decode(case["tokens"]) == text
        result.append(case)
    return result


if __name__ == "__main__":
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=256 + 400 + 1, min_frequency=1, special_tokens=[END], show_progress=False)
    os.makedirs(small, exist_ok=True)
    trained.save_model(small)

    chance = random.Random(7)
    alphabet = sorted({c for text in TEXTS for c in text})
    mixed = ["".join(chance.choice(alphabet) for _ in range(chance.randrange(1, 40))) for _ in range(40)]
    texts = TEXTS + ["a<|endoftext|><|endoftext|> b <|endoftext|>"] + SENTENCES + mixed
    result = {"tokenizers": tokenizers.__version__, "tiktoken": tiktoken.__version__,
              "published": cases(sys.argv[1], texts), "small": cases(small, texts)}
    with open(os.path.join(here, "gpt2_tokenizer.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(result, ensure_ascii=True).replace('{"text"', '\n{"text"') + "\n")
