#!/bin/bash
# Folders with config.json and model.safetensors by the program: looked at, trained further, written again.
# usage: folders.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
folders=$source/tests/golden/hugging_face
export XTAPE_MODELS="$source/models"

expect 0 "^9,424 parameters$" "" show "$folders/tiny"
expect 0 "n_inner = 24" "" show "$folders/untied"
expect 0 "^ +lm_head +embedding +1,552" "" show "$folders/untied"

for i in $(seq 30); do echo "a rolling stone gathers no moss, and a stitch in time saves nine."; done >words.txt
small=(--set data.text=words.txt --set 'tokenizer={"kind": "character"}' --set data.block_size=16 --set steps=20
  --set schedule.rate=1e-2 --set schedule.warmup=1 --set batch.accumulate=1 --threads 1)
expect 0 "^run: step 20  validation loss" "9424 parameters, step 0 of 20" train gpt2_finetune --from "$folders/half" --out run "${small[@]}"
holds "the run has the folder's words" cmp -s run/hugging_face/config.json "$folders/half/config.json"
expect 0 "^a rolling stone" "" generate run --prompt "a rolling stone" --tokens 4 --temperature 0
expect 0 "^validation_loss [0-3]\." "" eval run
expect 0 "^folder$" "" export run folder
holds "the folder is whole" [ -s folder/config.json -a -s folder/model.safetensors -a -s folder/generation_config.json ]
expect 0 "^9,424 parameters$" "" show folder
expect 2 "" "folder exists already" export run folder
expect 0 "^run2: step 1 " "step 0 of 1" train gpt2_finetune --from folder --out run2 "${small[@]}" --set steps=1
expect 0 "^adapted: step 20 " "of them trained, step 0 of 20" train gpt2_lora_finetune --from "$folders/half" --out adapted "${small[@]}"
expect 2 "" "missing: h.0.attn.c_attn.lora_a" train gpt2_lora_finetune --from "$folders/half" --out run4 "${small[@]}" --set 'initialise=[]'
expect 2 "" "excludes|--resume" train run --from folder --resume
expect 0 "^again$" "" export "$folders/untied" again
holds "what is in several files or two bytes is in one file of four" cmp -s <("$xtape" show again) <("$xtape" show "$folders/untied")

sed '/"definition"/d' "$source/models/recipes/gpt2_finetune.json" >bare.json
expect 2 "" "needs the key 'definition' or 'from'" train bare.json --out none "${small[@]}"
expect 2 "" "none has no config.json" train gpt2_finetune --from none --out run3 "${small[@]}"
mkdir broken && cp "$folders"/tiny/*.json broken
expect 2 "" "broken has no model.safetensors" export broken out-of-it
expect 2 "" "no_such_run is not a run" export no_such_run out-of-it
expect 2 "" "has no entry \"hugging_face\"" train "$source/models/recipes/gpt2_finetune.json" --from "$folders/tiny" --out run3 "${small[@]}" --set definition="$source/models/lstm_lm.json"
finish
