#!/usr/bin/env python3
"""Trains recipes within memory limits, and prints the peak of the process, the time, and whether the weights are those
of an unlimited training.

usage: memory_limits.py [--program FILE] [--limits N] [--threads N] [--only NAME,NAME] [--bisect]

The limits go from what an unlimited training takes down to the least that the program says. --bisect also looks for the
least limit that is accepted, to 0.25 MiB. The data is made here; half of the recipes have batches of many shapes. The
exit code is 1 if a peak exceeds its limit, if weights differ, or if less than the least that was said is enough."""
import argparse, gzip, hashlib, os, random, re, shutil, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNITS = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
TEXT = {"data.text": "text.txt", "steps": 6, "evaluate_every": 3, "schedule.warmup": 1}
ANSWERS = {"steps": 10, "evaluate_every": 5, "schedule.warmup": 1, "batch.size": 256}
RECIPES = {
    "shakespeare_char": TEXT,
    "shakespeare_transformer": {**TEXT, "batch.size": 4},
    "shakespeare_lstm": TEXT,
    "sorting": {**ANSWERS, "data.text": "sorting.txt"},
    # Batches of many shapes:
    "multi30k_tiny_en_de": {"data.folder": ".", "batch.tokens": 768, "steps": 16, "evaluate_every": 8},
    "multi30k_de_en": {"data.folder": ".", "batch.size": 8, "steps": 24, "epochs": 1000, "evaluate_every": 12},
    "roman_numerals": {**ANSWERS, "data.pairs": "roman.tsv", "data.held_out": 100},
    "reversing": {**ANSWERS, "data.pairs": "reversing.tsv", "data.held_out": 100},
}


def roman(number):
    text = ""
    for value, letters in ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
                           (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        text += letters * (number // value)
        number %= value
    return text


def make_data(folder):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnoprstu", k=draw.randint(2, 9))) for _ in range(3000)]

    def sentence(longest):
        return " ".join(words[min(int(draw.paretovariate(0.7)), len(words)) - 1] for _ in range(draw.randint(4, longest)))

    def write(name, lines):
        (folder / name).write_text("".join(line + "\n" for line in lines))

    write("text.txt", (sentence(12) for _ in range(3000)))
    for split, count in (("train", 2000), ("valid", 100), ("val", 100)):
        for language in ("en", "de"):
            for name in (f"{split}.{language}.gz", f"{split}.lc.norm.tok.{language}.gz"):
                with gzip.open(folder / name, "wt") as file:
                    file.writelines(sentence(30) + "\n" for _ in range(count))
    write("roman.tsv", (f"{n}\t{roman(n)}" for n in draw.sample(range(1, 4000), 1500)))
    letters = ["".join(draw.choices("abcdefgh", k=draw.randint(2, 14))) for _ in range(1500)]
    write("reversing.tsv", (f"{word}\t{word[::-1]}" for word in letters))
    write("sorting.txt", ("".join(digits) + "=" + "".join(sorted(digits))
                          for digits in (draw.choices("0123456789", k=draw.randint(3, 9)) for _ in range(1500))))


class Trained:
    """A training of a recipe in `folder`, within `memory` MiB if it is not None."""

    def __init__(self, a, folder, name, memory=None, steps=None):
        shutil.rmtree(folder / "run", ignore_errors=True)
        words = [os.path.abspath(a.program), "train", name, "--out", "run", "--threads", str(a.threads)]
        for key, value in {**RECIPES[name], **({"steps": steps} if steps else {})}.items():
            words += ["--set", f"{key}={value}"]
        if memory is not None:
            words += ["--set", f'memory="{memory:.4f} MiB"']
        start = time.time()
        with open(folder / "printed", "w") as printed:
            process = subprocess.Popen(words, cwd=folder, stdout=printed, stderr=printed,
                                       env={**os.environ, "XTAPE_MODELS": str(ROOT / "models")})
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.wall = time.time() - start
        self.seconds = usage.ru_utime + usage.ru_stime
        self.peak = usage.ru_maxrss / 1024
        self.printed = (folder / "printed").read_text()
        self.done = process.returncode == 0
        least = re.search(r"training needs at least ([0-9.]+) (\w+)", self.printed)
        self.least = float(least[1]) * UNITS[least[2]] if least else None
        if not self.done and (self.least is None or (folder / "run").exists()):
            sys.exit(f"{name}, {memory}: {self.printed}")
        weights = sorted((folder / "run").glob("checkpoints/*/weights.safetensors"))
        self.weights = hashlib.sha256(weights[-1].read_bytes()).hexdigest() if self.done else None


def bisected(a, folder, name, least):
    """The least limit that is accepted. What is accepted must also do for the batches of other shapes that follow."""
    low, high = least - 4, least
    while high - low > 0.25:
        middle = (low + high) / 2
        if Trained(a, folder, name, middle, 3).done:
            high = middle
        else:
            low = middle
    return high


def main():
    a = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    a.add_argument("--program", default=str(ROOT / "build/src/cli/xtape"))
    a.add_argument("--limits", type=int, default=8)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--only", default=",".join(RECIPES))
    a.add_argument("--bisect", action="store_true")
    a = a.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_data(folder)
        for name in a.only.split(","):
            free = Trained(a, folder, name)
            # What is resident varies by 0.9 MiB from process to process, and with it the least that is said.
            said = [Trained(a, folder, name, 1 / 1024).least for _ in range(5)]
            least = max(said)
            print(f"{name}: unlimited: peak {free.peak:.1f} MiB, {free.seconds:.1f} s; said to need {least:.2f} MiB",
                  flush=True)
            most = max(least, free.peak + 0.5)
            for i in range(a.limits):
                limit = most - (most - least) * i / max(1, a.limits - 1)
                made = Trained(a, folder, name, limit)
                good = made.done and made.peak <= limit and made.weights == free.weights
                failed += not good
                print(f"  limit {limit:6.1f} MiB: peak {made.peak:6.1f}, time {made.seconds / free.seconds:.2f} "
                      f"{'' if good else '  WRONG: ' + made.printed.strip()[-200:]}", flush=True)
            if a.bisect:
                found = bisected(a, folder, name, least)
                failed += min(said) - found > 1.25  # 0.75 MiB are said more, for what is resident elsewhere
                print(f"  least by bisection {found:.2f} MiB, said {min(said):.2f} to {least:.2f}", flush=True)
    print(f"{failed} wrong")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
