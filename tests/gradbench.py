#!/usr/bin/env python3
"""The program of examples/gradbench speaks GradBench's protocol, and its outputs agree with those of tests/golden.

usage: gradbench.py PROGRAM
"""
import json
import math
import subprocess
import sys
from pathlib import Path

from counted import holds, report

GOLDEN = Path(__file__).parent / "golden/data/gradbench.jsonl"


def difference(a, b):
    """The largest difference of the numbers, relative to those above 1; infinite if the structure differs."""
    if isinstance(a, dict):
        same = isinstance(b, dict) and a.keys() == b.keys()
        return max((difference(a[key], b[key]) for key in a), default=0) if same else math.inf
    if isinstance(a, list):
        same = isinstance(b, list) and len(a) == len(b)
        return max((difference(x, y) for x, y in zip(a, b)), default=0) if same else math.inf
    if isinstance(b, (dict, list)) or not math.isfinite(b):
        return math.inf
    return abs(a - b) / max(1, abs(a))


def talk(program, messages):
    text = "".join(json.dumps({"id": i} | message) + "\n" for i, message in enumerate(messages))
    done = subprocess.run([program], input=text, capture_output=True, text=True, timeout=100, check=False)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def main():
    program = sys.argv[1]
    golden = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    repeated = {"kind": "evaluate", "module": "lse", "function": "primal",
                "input": {"x": [0.5, 0.25], "min_runs": 3, "min_seconds": 0.0}}
    messages = [{"kind": "start", "eval": "lse"}, {"kind": "define", "module": "lse"},
                {"kind": "define", "module": "nothing"}, {"kind": "analysis", "of": 0, "valid": True},
                {"kind": "evaluate", "module": "lse", "function": "third", "input": {}},
                {"kind": "evaluate", "module": "lse", "function": "primal", "input": {"x": "text"}}, repeated]
    done, answers = talk(program, messages + [each["message"] for each in golden] + [{"kind": "end"}])
    holds("the program ends without an error", done.returncode == 0 and not done.stderr, done.stderr)
    holds("every message has its answer", [a["id"] for a in answers] == list(range(len(messages) + len(golden) + 1)),
          done.stdout)
    holds("start names the tool", answers[0].get("tool") == "xtape", str(answers[0]))
    holds("an eval is defined", answers[1].get("success") is True, str(answers[1]))
    holds("an unknown eval is not", answers[2].get("success") is False, str(answers[2]))
    for answer, what in (answers[4], "an unknown function"), (answers[5], "an input of another type"):
        holds(f"{what} is an error", answer.get("success") is False and answer.get("error"), str(answer))
    names = [each["name"] for each in answers[6]["timings"]]
    holds("each run has its time", names == ["prepare"] + 3 * ["evaluate"], str(answers[6]))

    for each, answer in zip(golden, answers[len(messages):]):
        message = each["message"]
        far = difference(each["output"], answer.get("output", math.nan))
        holds(f"{message['module']} {message['function']} agrees with the reference", far < 1e-9,
              f"differs by {far}: {str(answer)[:1000]}")
    return report()


sys.exit(main())
