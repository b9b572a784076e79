#!/bin/bash
# Draws the pictures of docs/architecture/walkthrough.md from a small tape and the plan of a small
# GPT. Needs graphviz and gnuplot. usage: draw.sh XTAPE
set -euo pipefail
xtape=$(realpath "$1")
images=$(cd "$(dirname "$0")" && pwd)
cd "$(mktemp -d)"
cat >small.json <<'JSON'
{"xtape": 2, "name": "small", "model": {"functions": {"loss": {
  "inputs": {"x": "float [2, 3]", "w": "float [3]"}, "result": "mean(square(tanh(x * w)))"}}}}
JSON
"$xtape" show small.json --tape loss --format dot | dot -Grankdir=LR -Tsvg >"$images/tape.svg"
"$xtape" show gpt2 --set n_layer=2 --set n_embd=128 --set n_head=4 --set vocab_size=512 --tape loss --with b=8,t=64 --grad \
  --save saved >/dev/null
"$xtape" plan saved --threads 1 --out "$images/plan.svg" >/dev/null
