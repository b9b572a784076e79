#!/bin/bash
# The program on one processor: its instruction set, a small training, and a few characters of text.
# usage: processor.sh PROGRAM SOURCE_ROOT INSTRUCTION_SET
source "$(dirname "$0")/frame.sh" "$@"
export XTAPE_MODELS=$source/models

for _ in $(seq 60); do echo "the quick brown fox jumps over the lazy dog"; done >text.txt
small=(--set data.text=text.txt --set data.block_size=16 --set hyper.n_embd=16 --set hyper.n_layer=1
  --set hyper.n_head=2 --set batch.size=4 --set schedule.warmup=1 --set evaluate_every=2 --threads 2)

expect 0 "^instruction set $3$" "" --version
expect 0 "^run: step 4  validation loss [0-9.]+" "step 4 of 4" train shakespeare_char --out run "${small[@]}" \
  --set steps=4
expect 0 "^validation_loss [0-9.]+" "" eval run
expect 0 "^the " "" generate run --prompt "the " --tokens 4
finish
