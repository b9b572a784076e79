#!/bin/bash
# Draws the pictures of docs/architecture/walkthrough.md from a tape and a plan. Needs graphviz and gnuplot. usage: draw.sh XTAPE
set -euo pipefail
xtape=$(realpath "$1")
images=$(cd "$(dirname "$0")" && pwd)
cd "$(mktemp -d)"
cat >small.json <<'JSON'
{"xtape": 2, "name": "small", "model": {"functions": {"loss": {
  "inputs": {"x": "float [2, 3]", "w": "float [3]"}, "result": "mean(square(tanh(x * w)))"}}}}
JSON
"$xtape" show small.json --tape loss --format dot | dot -Grankdir=LR -Tsvg >"$images/tape.svg"
"$xtape" show small.json --tape loss --grad --save saved >/dev/null
"$xtape" plan saved --threads 1 --out "$images/plan.svg" >/dev/null
