#!/bin/bash
# Trains a small GPT, defined in models/gpt2.json, to add two numbers, then asks it some sums.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
bash scripts/build.sh build

xtape=build/src/cli/xtape
run=build/demo
rm -rf "$run"
"$xtape" train models/recipes/adder.json --out "$run"
"$xtape" eval "$run"
echo
for sum in 47+85 12+34 99+99 8+5 60+7; do
  "$xtape" generate "$run" --prompt "$sum=" --tokens 4 --temperature 0
done
