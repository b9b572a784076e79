#!/usr/bin/env python3
"""Compares two builds that must plan and compute the same, or one build on two processors that must compute the same.

usage: replay.py BEFORE AFTER [--under COMMAND] [--only KIND,…] [--tapes N] [--steps N] [--data FOLDER] [--out FOLDER]

BEFORE and AFTER are build directories. Both print, and must print the same:
  - workloads: plans and digests of every value of the training steps of all workloads (tests/plans);
  - tapes: hashes of the plans and results of N random tapes (2000), each played in 20 ways (tests/tapes);
  - ops: digests of the results and gradients of every op (tests/bits);
  - recipes: losses and gradient norms of the first N updates (3) of the recipes, and their results on validation data.
With --under, the programs of AFTER run under a command that gives them another processor, such as
"env XTAPE_ISA=avx2" or "bash scripts/aarch64.sh run". Plans may then differ, as sizes of scratch memory do, and only results are
compared.
The recipes that need no given data are always trained; those on Shakespeare and Multi30k with --data, a folder that has
tinyshakespeare/input.txt, multi30k/ and multi30k-bpe/. Prints the first difference of each kind, and exits with 1 if
there is any, or if a program fails. What was printed stays in --out (replayed)."""
import argparse, itertools, json, os, re, shlex, shutil, subprocess, sys

VARYING = ("tokens_per_s", "seconds")


def made_data(build, folder):
    """Writes the data of the recipes that need none, and returns their settings by recipe."""
    os.makedirs(folder, exist_ok=True)
    programs = os.path.join(build, "examples", "data")
    for program, *words in (("number_words", "3000", "200"), ("sums",), ("dates", "3000", "200")):
        subprocess.run([os.path.join(programs, program), os.path.join(folder, program), *words], check=True)
    digits = ["".join(str((i * 7919 + k * 104729) // (k + 3) % 10) for k in range(3 + i % 6)) for i in range(3000)]

    def write(name, lines):
        with open(os.path.join(folder, name), "w") as file:
            file.writelines(line + "\n" for line in lines)
        return os.path.join(folder, name)

    reversing = write("reversing.tsv", (f"{d}\t{d[::-1]}" for d in dict.fromkeys(digits)))
    sorting = write("sorting.txt", ("".join(d) + "=" + "".join(sorted(d)) for d in itertools.product("012", repeat=6)))
    texts = write("texts.tsv", ("label\ttext", *(f"{'odd' if int(d) % 2 else 'even'}\t{' '.join(d)}" for d in digits)))
    return {
        "number_words": {"data.folder": os.path.join(folder, "number_words")},
        "adder": {"data.folder": os.path.join(folder, "sums")},
        "dates_gru": {"data.folder": os.path.join(folder, "dates")},
        "dates_lstm": {"data.folder": os.path.join(folder, "dates")},
        "reversing": {"data.pairs": reversing, "data.held_out": 100},
        "sorting": {"data.text": sorting},
        "classify_texts": {"data.table": texts},
    }


def given_data(folder):
    text = {"data.text": os.path.join(folder, "tinyshakespeare", "input.txt")}
    pairs = {"data.folder": os.path.join(folder, "multi30k")}
    return {
        "shakespeare_char": text, "shakespeare_lstm": text, "shakespeare_transformer": text,
        "gpt2_padded": {**text, "hyper.n_positions": 2049},  # some validation texts are longer than the recipe's 255
        "multi30k_de_en": pairs, "multi30k_gru": pairs, "multi30k_lstm": pairs,
        "multi30k_tiny_en_de": {"data.folder": os.path.join(folder, "multi30k-bpe")},
    }


def output_of(words):
    """What a program prints. One that fails proves nothing, not even if it fails in both builds."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def losses(build, under, recipe, settings, steps, run):
    """The lines of a training of a few updates."""
    shutil.rmtree(run, ignore_errors=True)
    words = []
    for key, value in {**settings, "steps": steps, "schedule.warmup": 1}.items():
        words += ["--set", f"{key}={value}"]
    output_of([*under, os.path.join(build, "src", "cli", "xtape"), "train", recipe, "--out", run, "--threads", "2", *words])
    lines = []
    with open(os.path.join(run, "metrics.jsonl")) as file:
        for line in file:
            kept = {key: value for key, value in json.loads(line).items() if key not in VARYING}
            lines.append(f"{recipe}: {json.dumps(kept)}")
    return lines


def printed(build, under, *words):
    """What a program of the tests prints, without the folder of the sources, which sites name."""
    with open(os.path.join(build, "meson-info", "meson-info.json")) as file:
        source = json.load(file)["directories"]["source"]
    return output_of([*under, os.path.join(build, "tests", words[0]), *words[1:]]).replace(source + "/", "").splitlines()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("builds", nargs=2)
    parser.add_argument("--under", default="", type=shlex.split)
    parser.add_argument("--only", default="workloads,tapes,ops,recipes", type=lambda names: names.split(","))
    parser.add_argument("--tapes", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--data")
    parser.add_argument("--out", default="replayed")
    wanted = parser.parse_args()
    os.makedirs(wanted.out, exist_ok=True)

    def train_all(build, under):
        recipes = made_data(wanted.builds[0], os.path.join(wanted.out, "data"))
        if wanted.data:
            recipes.update(given_data(wanted.data))
        return [line for recipe, settings in recipes.items()
                for line in losses(build, under, recipe, settings, wanted.steps, os.path.join(wanted.out, "run"))]

    kinds = {
        "workloads": lambda *side: printed(*side, "plans", *(["--digests"] if wanted.under else [])),
        "tapes": lambda *side: [re.sub(" plan [0-9a-f]+,", "", line) if wanted.under else line
                                for line in printed(*side, "tapes", "--digests", "--count", str(wanted.tapes))],
        "ops": lambda *side: printed(*side, "bits"),
        "recipes": train_all,
    }
    if unknown := set(wanted.only) - set(kinds):
        parser.error(f"--only takes {', '.join(kinds)}, not {', '.join(sorted(unknown))}")
    differ = 0
    for kind in wanted.only:
        both = []
        for side, build, under in zip(("before", "after"), wanted.builds, ([], wanted.under)):
            both.append(kinds[kind](build, under))
            with open(os.path.join(wanted.out, f"{kind}.{side}"), "w") as file:
                file.writelines(line + "\n" for line in both[-1])
        unequal = [(a, b) for a, b in itertools.zip_longest(*both) if a != b]
        print(f"{kind}: {len(both[0])} lines, {len(unequal)} differ", flush=True)
        if unequal or not both[0]:
            differ += 1
            print(f"  before: {unequal[0][0]}\n  after:  {unequal[0][1]}" if unequal else "  nothing was printed")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
