"""Runs the benchmarks of xtape and its peers in turn and prints a table of their medians. Called by compare.sh."""
import argparse, contextlib, itertools, json, re, statistics, subprocess, sys, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = [str(ROOT / "build/tests/workloads")]
THEIRS = [sys.executable, str(ROOT / "tests/bench/torch_workloads.py")]
TRAINING = ["gpt-char", "gpt-baby", "gpt2-124m", "transformer", "gru-attention", "lstm-attention"]
DECODING = "gpt2-124m-decode"
# Ends with this program, even if that is killed.
LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n  for _ in range(1000000): pass"


def printed(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("failed: " + " ".join(command))
    return done.stdout


def measured(command):
    """The JSON lines that a benchmark prints."""
    lines = [json.loads(line) for line in printed(command).splitlines() if line.startswith("{")]
    for line in lines:
        print(json.dumps(line), file=sys.stderr, flush=True)
    return lines


def in_turn(rounds, *commands):
    """The lines of all rounds of each command (None: none)."""
    found = [[] for _ in commands]
    for _ in range(rounds):
        for lines, command in zip(found, commands):
            lines.extend(measured(command) if command else [])
    return found


@contextlib.contextmanager
def busy(count):
    """Keeps so many processors busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def rows_of(options):
    """What to compare: the label of the row, our options, and the peer's (None: it has no counterpart)."""
    for name in options.only.split(","):
        for precision in options.precision.split(","):
            narrow = ["--bf16"] if precision == "bf16" else []
            if name == DECODING:
                weights = "bfloat16" if narrow else "float32"
                yield f"{name}, {weights} weights", ["--only", name, "--weights", weights], ["--only", name, *narrow]
            else:
                yield f"{name}, {precision}", ["--only", name, "--precision", precision], ["--only", name, *narrow]
        if name == DECODING and "bf16" in options.precision.split(","):
            yield f"{name}, int8 weights", ["--only", name, "--weights", "int8"], None


def cell(lines):
    if not lines:
        return ""
    return f"{statistics.median(line['ms'] for line in lines):.3g} ms, {max(line['peak_mb'] for line in lines)} MiB"


def print_table(head, rows, note):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print("\n" + note)


def training(options):
    common, rows, peer = ["--steps", options.steps, "--threads", options.threads], [], "PyTorch"
    for (label, own, their_options), beside in itertools.product(rows_of(options), options.beside.split(",")):
        theirs = THEIRS + their_options + common + ["--compile"] * options.compile if their_options else None
        with busy(int(beside)):
            ours, theirs = in_turn(options.rounds, OURS + own + common, theirs)
        if beside != "0":
            label += f", beside {beside} busy"
        ratio = ""
        if theirs:
            peer = theirs[-1]["peer"]
            ratio = f"{statistics.median(a['ms'] for a in ours) / statistics.median(b['ms'] for b in theirs):.2f}"
        rows.append((label, cell(ours), cell(theirs), ratio))
    print_table(("step", "xtape", peer, "ratio of times"), rows,
                f"Medians of {options.rounds} rounds in turn, {options.threads} threads. Memory: the peak of the process.")


def translation(options):
    """Sentences per second of the words that a run translates; the best of the rounds, since the first one plans."""
    own = [str(ROOT / "build/tests/translation"), options.run, options.source, "--threads", options.threads]
    peer = [sys.executable, str(ROOT / "tests/bench/ctranslate2_translation.py"), options.run, options.source,
            "--threads", options.threads]
    columns = {"xtape float32": own, "CTranslate2 float32": peer,
               "xtape int8, bf16 products": own + ["--weights", "int8", "--precision", "bf16"],
               "xtape bfloat16, bf16 products": own + ["--weights", "bfloat16", "--precision", "bf16"],
               "CTranslate2 int8": peer + ["--type", "int8"]}
    found = in_turn(options.rounds, *columns.values())
    rows = [(name, *(f"{max(line['sentences_per_s'] for line in lines if line['beam'] == beam):.0f}" for beam in (1, 5)))
            for name, lines in zip(columns, found)]
    print_table(("sentences/s", "greedy", "beam 5"), rows, f"The best of {options.rounds} rounds in turn.")


def recurrent(options):
    """The recipe shakespeare_lstm and its PyTorch counterpart, one thread: validation loss and time of the training."""
    run = ROOT / "build" / f"compare-lstm-{time.time_ns()}"
    own = [str(ROOT / "build/src/cli/xtape"), "train", "shakespeare_lstm", "--threads", "1", "--set", f"data.text={options.text}",
           "--out", str(run)]
    peer = [sys.executable, str(ROOT / "tests/bench/torch_lstm_lm.py"), options.text, "--threads", "1"]
    rows = []
    for name, command in (("xtape", own), ("PyTorch", peer)):
        start = time.perf_counter()
        losses = re.findall(r"validation loss\s+([\d.]+)", printed(command))
        rows.append((name, losses[-1], f"{time.perf_counter() - start:.0f} s"))
    print_table(("shakespeare_lstm", "validation loss", "time"), rows, f"The run is {run}.")


def main():
    parser = argparse.ArgumentParser(prog="compare.sh")
    parser.set_defaults(compared=training)
    what = parser.add_subparsers()
    steps = what.add_parser("training", help="steps of training and of generating, beside PyTorch (the default)")
    for each in (parser, steps):
        each.add_argument("--only", default=",".join([*TRAINING, DECODING]))
        each.add_argument("--precision", default="float32,bf16",
                          help="of products: float32, bf16x3, bf16; PyTorch runs bf16 with autocast, all else in float32")
        each.add_argument("--rounds", type=int, default=3)
        each.add_argument("--steps", default="9")
        each.add_argument("--threads", default="2")
        each.add_argument("--beside", default="0", help="numbers of other processes that each keep a processor busy")
        each.add_argument("--compile", action="store_true", help="run PyTorch with torch.compile")
    sentences = what.add_parser("translation", help="a run of models/transformer.json on words, beside CTranslate2")
    sentences.set_defaults(compared=translation)
    sentences.add_argument("run")
    sentences.add_argument("source")
    sentences.add_argument("--rounds", type=int, default=3)
    sentences.add_argument("--threads", default="2")
    language = what.add_parser("recurrent", help="the recipe shakespeare_lstm on a text, beside PyTorch")
    language.set_defaults(compared=recurrent)
    language.add_argument("text")
    options = parser.parse_args()
    options.compared(options)


if __name__ == "__main__":
    main()
