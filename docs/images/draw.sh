#!/bin/bash
# Draws the pictures of the documentation again, in a minute or two: speed.svg from the table of docs/explanation/performance.md, plan.svg
# from the plan of a small GPT, nan.svg from a training that fails, attention.svg from one that converts dates, and
# tape.svg from a small tape, which needs graphviz. The suites `svg` and `pictures` check speed.svg and nan.svg.
# usage: draw.sh BUILD
set -euo pipefail
build=$(realpath "$1")
xtape=$build/src/cli/xtape
images=$(cd "$(dirname "$0")" && pwd)
XTAPE_DRAW=1 "$build/tests/svg_test"
cd "$(mktemp -d)"
"$xtape" show gpt2 --set n_layer=2 --set n_embd=128 --set n_head=4 --set vocab_size=512 --tape loss --with b=8,t=64 --grad \
  --save saved >/dev/null
"$xtape" plan saved --threads 1 --out "$images/plan.svg" >/dev/null
cp "$images"/../../examples/data/entropy*.json .
for _ in {1..100}; do echo "ROMEO: is the day so young?"; done >text.txt
"$xtape" train entropy_recipe.json --out failed 2>/dev/null || "$xtape" replay failed/capsule --out "$images/nan.svg" >/dev/null
"$build/examples/data/dates" dates
"$xtape" train dates_gru --set data.folder=dates --set steps=1500 --set evaluate_every=1500 --out run
"$xtape" attention run --source "sunday, 3rd of may 1998" --out "$images/attention.svg"
cat >small.json <<'JSON'
{"xtape": 2, "name": "small", "model": {"functions": {"loss": {
  "inputs": {"x": "float [2, 3]", "w": "float [3]"}, "result": "mean(square(tanh(x * w)))"}}}}
JSON
"$xtape" show small.json --tape loss --format dot | dot -Grankdir=LR -Tsvg >"$images/tape.svg"
