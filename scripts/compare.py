"""Runs the benchmarks of xtape and PyTorch in turn and prints a table of their medians. Called by compare.sh."""
import argparse, json, statistics, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = [str(ROOT / "build/tests/workloads")]
THEIRS = [sys.executable, str(ROOT / "tests/bench/torch_workloads.py")]
TRAINING = ["gpt-char", "gpt-baby", "gpt2-124m", "transformer", "gru-attention", "lstm-attention"]
DECODING = "gpt2-124m-decode"


def measured(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit("failed: " + " ".join(command))
    print(json.dumps(lines[-1]), file=sys.stderr, flush=True)
    return lines[-1]


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


def main():
    parser = argparse.ArgumentParser(prog="compare.sh")
    parser.add_argument("--only", default=",".join([*TRAINING, DECODING]))
    parser.add_argument("--precision", default="float32,bf16",
                        help="of products: float32, bf16x3, bf16; PyTorch runs bf16 with autocast, all else in float32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", default="9")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--compile", action="store_true", help="run PyTorch with torch.compile")
    options = parser.parse_args()
    common = ["--steps", options.steps, "--threads", options.threads]

    table = []
    for label, own, peer in rows_of(options):
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(measured(OURS + own + common))
            if peer:
                theirs.append(measured(THEIRS + peer + common + ["--compile"] * options.compile))
        ratio = statistics.median(a["ms"] for a in ours) / statistics.median(b["ms"] for b in theirs) if theirs else None
        table.append(f"| {label} | {cell(ours)} | {cell(theirs)} | {f'{ratio:.2f}' if ratio else ''} |")
        version = theirs[-1]["peer"] if theirs else "PyTorch"
    print(f"\n| step | xtape | {version} | ratio of times |\n|---|---|---|---|\n" + "\n".join(table))
    print(f"\nMedians of {options.rounds} rounds in turn, {options.threads} threads. Memory: the peak of the process.")


if __name__ == "__main__":
    main()
