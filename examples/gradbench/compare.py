#!/usr/bin/env python3
"""Runs the evals of GradBench with xtape and other tools on one processor. Prints the least time of all rounds in ms.

Needs a checkout of GradBench with the programs of its C++ tools (make -C tools/manual …). Omits missing tools, and JAX
and PyTorch if `--python` cannot import them. peers.py has the programs that GradBench lacks for JAX and PyTorch. The
outputs must agree with those of `manual`, or with what GradBench expects.

usage: compare.py CHECKOUT [--program build/examples/gradbench/gradbench] [--python python3] [--evals lse,gmm]
                  [--tools xtape,jax] [--sizes few|all] [--rounds 2] [--seconds 0.3] [--limit 20] [--as-if-threads N]

With --as-if-threads, compares the predicted time of N threads with the measured one instead. Only xtape runs.
"""
import argparse
import json
import math
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CPP = ["manual", "cppad", "codipack", "finite"]
FUNCTIONS = {"hello": ("square", "double"), "kmeans": ("cost", "dir"), "saddle": ("rr", "rf", "fr", "ff"),
             "particle": ("rr", "rf", "fr", "ff")}
FUNCTIONS |= dict.fromkeys(["lse", "llsq", "ode", "det"], ("primal", "gradient"))
FUNCTIONS |= dict.fromkeys(["gmm", "lstm", "ba", "ht"], ("objective", "jacobian"))
LEAST = 8.246324826140356e-06  # GradBench expects this number four times from `saddle`
EXPECTED = {"saddle": [LEAST] * 4, "particle": 0.2071918746486116}


# Inputs: those of GradBench, or of the same sizes.

def numbers(text):
    return [float(word) for word in text.split()]


def of_text(checkout, layers, characters):
    path = checkout / "evals/lstm/data/lstm_full.txt"
    text = path.read_text(encoding="utf8") if path.exists() else "It’s the words of a text, again and again. " * 400
    codes = [ord(character) for character in text[:characters]]
    bits = math.ceil(math.log2(max(codes)))
    draw = np.random.default_rng(1)
    return {"main_params": draw.random((2 * layers, 4 * bits)).tolist(),
            "extra_params": draw.random((3, bits)).tolist(),
            "state": draw.random((2 * layers, bits)).tolist(),
            "sequence": [[float(code >> (bits - 1 - i) & 1) for i in range(bits)] for code in codes]}


def of_mixture(d, k, n=1000):
    draw = np.random.default_rng(31337)
    return {"d": d, "k": k, "n": n, "m": 0, "gamma": 1.0, "x": draw.normal(size=(n, d)).tolist(),
            "alpha": draw.normal(size=k).tolist(), "mu": draw.random((k, d)).tolist(),
            "q": draw.normal(size=(k, d)).tolist(), "l": draw.normal(size=(k, d * (d - 1) // 2)).tolist()}


def of_scene(checkout, number):
    path = next((checkout / "evals/ba/data").glob(f"ba{number}_*.txt"))
    counts, cam, x, w, feat = path.read_text().splitlines()[:5]
    n, m, p = map(int, counts.split())
    return {"n": n, "m": m, "p": p, "cam": numbers(cam), "x": numbers(x), "w": float(w), "feat": numbers(feat)}


def of_hand(checkout, variant, number):
    folder = checkout / f"evals/ht/data/{variant}"
    bones = [line.split(":") for line in (folder / "model/bones.txt").read_text().split()]
    vertices = [line.split(":") for line in (folder / "model/vertices.txt").read_text().split()]
    weights = np.zeros((len(vertices), len(bones)))
    for row, words in enumerate(vertices):
        for i in range(int(words[8])):
            weights[row, int(words[9 + 2 * i])] = float(words[10 + 2 * i])
    matrices = np.array([[float(word) for word in bone[2:34]] for bone in bones])
    lines = (folder / "model/triangles.txt").read_text().split()
    triangles = [[int(word) for word in line.split(":")] for line in lines]
    model = {"bone_count": len(bones), "bone_names": [bone[0] for bone in bones], "parents": [int(b[1]) for b in bones],
             "base_relatives": matrices[:, :16].reshape(-1, 4, 4).tolist(),
             "inverse_base_absolutes": matrices[:, 16:].reshape(-1, 4, 4).tolist(),
             "base_positions": [[float(word) for word in words[:3]] + [1.0] for words in vertices],
             "weights": weights.tolist(), "triangles": triangles, "is_mirrored": False}
    lines = next(folder.glob(f"hand{number}_*.txt")).read_text().splitlines()
    points, thetas = map(int, lines[0].split()[:2])
    rows = [numbers(line) for line in lines[1:1 + points]]
    rest = lines[1 + points:]
    us = [numbers(line) for line in rest[:points]] if variant.startswith("complicated") else []
    theta = [float(line) for line in rest[len(us):len(us) + thetas]]
    data = {"model": model, "correspondences": [int(row[0]) for row in rows], "points": [row[1:] for row in rows]}
    return {"theta": theta, "data": data, "us": us}


def inputs(eval_name, checkout, few):
    """(description, input) of each size, the small ones first."""
    draw = np.random.default_rng(31337)
    some = lambda every, chosen: chosen if few else every  # noqa: E731
    if eval_name == "hello":
        yield "x", 3.5
    elif eval_name == "lse":
        for n in some([2500 * 2**i for i in range(10)], [2500, 80000, 1280000]):
            yield f"n={n}", {"x": draw.random(n).tolist()}
    elif eval_name == "llsq":
        for n in some([16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8196, 16392], [16, 1024, 16392]):
            yield f"n={n},m=128", {"x": draw.random(128).tolist(), "n": n}
    elif eval_name == "kmeans":
        every = sorted(((k, n, d) for k in (10, 100, 1000) for n in (1000, 10000) for d in (8, 16)), key=math.prod)
        for k, n, d in some(every, [(10, 1000, 8), (100, 10000, 8), (1000, 10000, 16)]):
            points = draw.random((n, d))
            yield f"k={k},n={n},d={d}", {"points": points.tolist(), "centroids": points[-k:].tolist()}
    elif eval_name == "gmm":
        every = sorted(((d, k) for d in (2, 10, 20, 32, 64) for k in (5, 10, 25, 50, 100)), key=math.prod)
        for d, k in some(every, [(2, 5), (10, 25), (20, 50), (64, 100)]):
            yield f"d={d},k={k}", of_mixture(d, k)
    elif eval_name == "ode":
        every = sorted(((n, s) for n in (1000, 10000, 100000) for s in (1, 10, 100)), key=math.prod)
        for n, s in some(every, [(1000, 1), (1000, 100), (10000, 100), (100000, 100)]):
            yield f"n={n},s={s}", {"x": draw.random(n).tolist(), "s": s}
    elif eval_name == "lstm":
        for layers, characters in some([(i, c) for i in (2, 4, 6) for c in (1024, 4096, 8192)], [(2, 1024), (6, 8192)]):
            yield f"l={layers},c={characters}", of_text(checkout, layers, characters)
    elif eval_name == "ba":
        for number in some(range(1, 15), [1, 5, 10]):
            yield f"ba{number}", of_scene(checkout, number)
    elif eval_name == "ht":
        for variant, number in some([(f"{kind}_{size}", i) for size in ("small", "big") for kind in ("simple", "complicated")
                                     for i in range(1, 10)],
                                    [("simple_small", 9), ("complicated_small", 1), ("complicated_small", 9),
                                     ("complicated_big", 1), ("complicated_big", 9)]):
            yield f"{variant}{number}", of_hand(checkout, variant, number)
    elif eval_name == "det":
        for n in some([5, 6, 7, 8, 9, 10], [5, 7, 9]):
            yield f"l={n}", {"A": draw.random(n * n).tolist(), "ell": n}
    elif eval_name == "saddle":
        yield "start=1,1", {"start": [1.0, 1.0]}
    elif eval_name == "particle":
        yield "w=0", {"w": 0.0}


# Tools.

def environment():
    one = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")
    return os.environ | one | {"JAX_PLATFORMS": "cpu"}


def pin():
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])


class Messages:
    """A tool that reads GradBench's messages."""

    def __init__(self, command, folder=None, path=None, prepare=pin):
        self.command, self.folder, self.path, self.prepare = command, folder, path, prepare
        self.process, self.count = None, 0

    def ask(self, message, limit):
        if not self.process:
            extra = {"PYTHONPATH": self.path} if self.path else {}
            self.process = subprocess.Popen(self.command, cwd=self.folder, env=environment() | extra, text=True,
                                            preexec_fn=self.prepare, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL)
        self.count += 1
        try:
            self.process.stdin.write(json.dumps({"id": self.count} | message) + "\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], limit)[0]:
                raise TimeoutError
            line = self.process.stdout.readline()
            return json.loads(line) if line else {"success": False, "error": "the tool has ended"}
        except (BrokenPipeError, TimeoutError) as error:
            self.close()
            return {"success": False, "error": type(error).__name__}

    def evaluate(self, eval_name, function, fields, limit):
        return self.ask({"kind": "evaluate", "module": eval_name, "function": function, "input": fields}, limit)

    def defines(self, eval_name):
        return bool(self.ask({"kind": "define", "module": eval_name}, 120).get("success"))

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class Program:
    """A program of a C++ tool."""

    def __init__(self, folder):
        self.folder = folder

    def defines(self, eval_name):
        return (self.folder / eval_name).exists()

    def evaluate(self, eval_name, function, fields, limit):
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(fields, file)
            file.flush()
            try:
                done = subprocess.run([self.folder / eval_name, file.name, function], capture_output=True, text=True,
                                      preexec_fn=pin, env=environment(), timeout=limit, check=False)
            except subprocess.TimeoutExpired:
                return {"success": False, "error": "TimeoutError"}
        if done.returncode:
            return {"success": False, "error": done.stderr}
        output, *timings = done.stdout.splitlines()
        return {"success": True, "output": json.loads(output), "timings": list(map(json.loads, timings))}

    def close(self):
        pass


def tools_for(eval_name, options):
    peers = Path(__file__).with_name("peers.py")
    found = {"xtape": Messages([options.program])}
    for name in "jax", "pytorch":
        found[name] = Messages([options.python, peers, name], options.checkout,
                               f"{options.checkout / 'python/gradbench'}:{options.path}")
    for name in CPP:
        found[name] = Program(options.checkout / f"tools/{name}/bin")
    chosen = options.tools.split(",") if options.tools else list(found)
    return {name: tool for name, tool in found.items() if name in chosen and tool.defines(eval_name)}


def difference(a, b):
    """The largest difference of two outputs, relative to numbers above 1 as in GradBench; infinite for other shapes."""
    if isinstance(a, dict) and isinstance(b, dict):
        return max(difference(a[key], b[key]) for key in a) if a.keys() == b.keys() else math.inf
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape or not np.isfinite(b).all():
        return math.inf
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(a) + np.abs(b), 1), initial=0))


def compare_predictions(options):
    print("| eval | input | function | predicted | measured | ratio |\n|---|---|---|---|---|---|")
    tool = Messages([options.program, "--as-if-threads", str(options.as_if_threads)], prepare=None)
    for eval_name in options.evals.split(","):
        for description, fields in inputs(eval_name, options.checkout, options.sizes == "few"):
            if isinstance(fields, dict):
                fields |= {"min_runs": 3, "min_seconds": options.seconds}
            for function in FUNCTIONS[eval_name]:
                times = {"predict": [], "evaluate": []}
                for _ in range(options.rounds):
                    answer = tool.evaluate(eval_name, function, fields, options.limit)
                    for name, values in times.items():
                        values.append(statistics.median(each["nanoseconds"] / 1e6 for each in answer["timings"]
                                                        if each["name"] == name))
                predicted, measured = map(min, times.values())
                print(f"| {eval_name} | {description} | {function} | {predicted:.3f} | {measured:.3f} | "
                      f"{predicted / measured:.2f} |", flush=True)
    tool.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=lambda word: Path(word).resolve())
    parser.add_argument("--program", default="build/examples/gradbench/gradbench",
                        type=lambda word: Path(word).resolve())
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--path", default="", help="where the packages of GradBench's Python tools are")
    parser.add_argument("--evals", default=",".join(FUNCTIONS))
    parser.add_argument("--tools", default="")
    parser.add_argument("--sizes", choices=["few", "all"], default="few")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--limit", type=float, default=20, help="seconds after which a tool gives up an eval")
    parser.add_argument("--as-if-threads", type=int)
    options = parser.parse_args()
    if options.as_if_threads:
        return compare_predictions(options)

    wrong = 0
    names = options.tools.split(",") if options.tools else ["xtape", "jax", "pytorch", *CPP]
    print("| eval | input | function | " + " | ".join(names) + " | xtape / best | prepare |")
    print("|---|---|---|" + "---|" * (len(names) + 2))
    for eval_name in options.evals.split(","):
        tools, given_up = tools_for(eval_name, options), set()
        for description, fields in inputs(eval_name, options.checkout, options.sizes == "few"):
            if isinstance(fields, dict):
                fields |= {"min_runs": 3, "min_seconds": options.seconds}
            for function in FUNCTIONS[eval_name]:
                best, outputs, prepare = {}, {}, math.inf
                for _ in range(options.rounds):
                    for name, tool in tools.items():
                        if (name, function) in given_up:
                            continue
                        start = time.perf_counter()
                        answer = tool.evaluate(eval_name, function, fields, options.limit)
                        if not answer.get("success"):
                            if answer.get("error") == "TimeoutError" or time.perf_counter() - start > options.limit:
                                given_up.add((name, function))
                            print(f"{eval_name} {function} {name}: {str(answer.get('error'))[-300:]}", file=sys.stderr)
                            continue
                        took = [each["nanoseconds"] / 1e6 for each in answer.get("timings", [])
                                if each["name"] == "evaluate"]
                        best[name] = min([best.get(name, math.inf)] + took)
                        outputs[name] = answer["output"]
                        if name == "xtape":
                            prepare = min([prepare] + [each["nanoseconds"] / 1e6 for each in answer["timings"]
                                                       if each["name"] == "prepare"])
                golden = EXPECTED.get(eval_name, outputs.get("manual", outputs.get("jax")))
                for name, output in outputs.items():
                    if golden is not None and difference(golden, output) > 1e-6 and name not in ("finite",):
                        print(f"{eval_name} {description} {function} {name}: differs by {difference(golden, output)}",
                              file=sys.stderr)
                        wrong += name == "xtape"
                rivals = [value for name, value in best.items() if name not in ("xtape", "finite")]
                ratio = f"{best['xtape'] / min(rivals):.2f}" if "xtape" in best and rivals and min(rivals) > 0 else ""
                print(f"| {eval_name} | {description} | {function} | "
                      + " | ".join(f"{best[name]:.3f}" if name in best else "–" for name in names)
                      + f" | {ratio} | {prepare:.0f} |", flush=True)
        for tool in tools.values():
            tool.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
