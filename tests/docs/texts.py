"""Texts of documents beside what they are from: files, and what programs print."""
import pathlib, re

NOISE = 1e-4  # smaller numbers are rounding errors
TOLERANCE = 0.1
# A time or speed, which is another one each time; and a number that differs between instruction sets. `…` behind a
# number stands for its other digits.
MEASURED = r"\d+(?:\.\d+)?(?= ?(?:ms|s|µs|GFLOP/s|\w+/s)\b)|\d+:\d\d(?= left)"
ROUNDED = r"(?<![\w.])-?\d+(?:\.\d+(?:e[+-]?\d+)?|e-\d+|(?= [KM]iB\b))(?!\d|…|\.\d)"
PIECE = re.compile(rf"(?P<any>…)|(?P<measured>{MEASURED})|(?P<rounded>{ROUNDED})")


def near(first, second):
    """Whether two numbers are the same but for a tenth of the larger one."""
    return abs(first - second) <= max(TOLERANCE * max(abs(first), abs(second)), NOISE)


def fits(text, whole, entirely=False):
    """Whether `text` stands in `whole`, or is it entirely, whatever the white space. `…` stands for anything, times and
    speeds for each other, and a number with a fraction, or of memory, for one near it."""
    text, whole = (re.sub(r"\s+", " ", each).strip() for each in (text, whole))
    pattern, numbers, end = "", [], 0
    for piece in PIECE.finditer(text):
        pattern += re.escape(text[end : piece.start()])
        if piece["rounded"]:
            numbers.append(float(piece["rounded"]))
        pattern += {"any": ".*?", "measured": r"[\d.:]+", "rounded": r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"}[piece.lastgroup]
        end = piece.end()
    pattern += re.escape(text[end:])
    found = re.finditer(rf"\A{pattern}\Z" if entirely else pattern, whole, re.S)
    return any(all(near(float(each), number) for each, number in zip(match.groups(), numbers)) for match in found)


def quoted(text, whole):
    """Whether `text` stands in `whole` word for word, whatever the white space. `…` stands for anything."""
    pieces = [re.escape(re.sub(r"\s+", " ", piece).strip()) for piece in text.split("…")]
    return re.search(".*?".join(pieces), re.sub(r"\s+", " ", whole), re.S) is not None


def read(root, file):
    path = pathlib.Path(root) / file
    return path.read_text() if path.is_file() else None
