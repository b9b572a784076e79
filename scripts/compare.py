"""Runs two benchmarks alternately and prints the ratios of their results. Called by compare.sh."""
import argparse, json, statistics, subprocess, sys


def measure(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit("failed: " + " ".join(command))
    return lines[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="gpt-char,gpt-baby,gpt2-124m,transformer,gru-attention,lstm-attention")
    parser.add_argument("--steps", default="9")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--compile", action="store_true", help="run PyTorch with torch.compile")
    parser.add_argument("--precision", default="float32",
                        help="of xtape's products: float32, bf16x3 or bf16; with bf16, PyTorch runs with autocast to it")
    words = parser.parse_args()
    peer = ["--compile"] * words.compile + ["--bf16"] * (words.precision == "bf16")

    rows = []
    for name in words.only.split(","):
        options = ["--only", name, "--steps", words.steps, "--threads", words.threads]
        ours, theirs = [], []
        for _ in range(words.rounds):
            ours.append(measure([words.ours] + options + ["--precision", words.precision]))
            theirs.append(measure([sys.executable, words.theirs] + options + peer))
            for line in (ours[-1], theirs[-1]):
                print(json.dumps(line), flush=True)
        rows.append((name, ours, theirs))

    print(f"\n{'workload':14} {'xtape ms':>10} {'torch ms':>10} {'time':>6} {'xtape MB':>9} {'planned':>8} {'torch MB':>9} {'memory':>7}")
    for name, ours, theirs in rows:
        ms = [statistics.median(line["ms"] for line in side) for side in (ours, theirs)]
        mb = [max(line["peak_mb"] for line in side) for side in (ours, theirs)]
        planned = ours[-1].get("planned_peak_mb", "")
        print(f"{name:14} {ms[0]:10.1f} {ms[1]:10.1f} {ms[0] / ms[1]:6.2f} {mb[0]:9} {planned:8} {mb[1]:9} {mb[0] / mb[1]:7.2f}")
    print(f"\nmedians of {words.rounds} alternating rounds; ratios below 1: xtape is faster or smaller. Peer: {rows[0][2][0]['peer']}")


if __name__ == "__main__":
    main()
