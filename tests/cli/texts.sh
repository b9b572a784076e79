#!/bin/bash
# generate and eval on texts: many prompts at once, stops, runs and folders, perplexity.
# usage: texts.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export OMP_NUM_THREADS=1 XTAPE_MODELS="$source/models"

# A GPT-2 model that has memorised one sentence.
for _ in $(seq 200); do echo "the rain in spain, näh."; done >words.txt
vocabulary=$source/tests/golden/data/gpt2_small
expect 0 "run: step 150 " "step 150 of 150" train "$source/models/recipes/shakespeare_char.json" --out run \
  --set data.text=words.txt \
  --set "tokenizer={\"kind\": \"gpt2\", \"vocab\": \"$vocabulary/vocab.json\", \"merges\": \"$vocabulary/merges.txt\"}" \
  --set steps=150 --set schedule.warmup=5 --set schedule.rate=1e-2 --set data.block_size=32 --set hyper.n_embd=32 \
  --set hyper.n_layer=1 --set hyper.n_head=2 --set hyper.dropout_rate=0 --set hyper.bias=true --set evaluate_every=150 --seed 1

greedy=(--temperature 0 --tokens 40)
expect 0 "^the rain in spain, näh.$" "" generate run --prompt "the rain" "${greedy[@]}"
expect 0 "^the rain in $" "" generate run --prompt "the rain" "${greedy[@]}" --stop "nowhere" --stop "spain,"
expect 0 "^the rain in spain, n$" "" generate run --prompt "the rain" "${greedy[@]}" --stop "äh"
expect 0 "^the rain" "^model opened after .* ms, first token after .* ms, 39 more in .* ms each$" \
  generate run --prompt "the rain" "${greedy[@]}" --timings
expect 0 "^the rain" ", 99 more in .* ms each$" generate run --prompt "the rain" --timings

# Prompts in a batch give the same texts as single prompts, for any seed.
drawn=(--tokens 30 --temperature 1.5 --seed 11)
printf 'the rain\nin\nspain, näh. the r\n' >prompts.txt
while read -r prompt; do "$xtape" generate run --prompt "$prompt" "${drawn[@]}"; done <prompts.txt >single
expect 0 "^the rain" "" generate run --prompts prompts.txt "${drawn[@]}"
holds "a batch gives the same as single prompts" cmp -s single out
expect 0 "^the rain" "" generate run --prompt "the rain" --prompt in --prompt "spain, näh. the r" "${drawn[@]}" --batch-size 2
holds "prompts on the command line in smaller batches give the same" cmp -s single out
expect 0 "^in" "" generate run --prompt in "${drawn[@]}" --num-samples 3
one=$("$xtape" generate run --prompt in "${drawn[@]}")
holds "the first sample is what one would be" same "$one" "$(head -c "$(wc -c <<<"$one")" out)"

# An exported folder of the same model.
expect 0 "^folder$" "" export run folder
cp "$vocabulary/vocab.json" "$vocabulary/merges.txt" folder
expect 0 "^the rain in spain, näh.$" "" generate folder --prompt "the rain" "${greedy[@]}"
expect 2 "" "needs a run: folder is a model folder" generate folder --prompt a --tokens 1 --checkpoint best

# Perplexity of a text.
head -n 40 words.txt >text.txt
expect 0 "^tokens [0-9]+$" "" eval run --text text.txt
cp out whole
for line in "^loss 0\.[0-9]+$" "^perplexity 1\.[0-9]+$" "^bits_per_byte 0\.[0-9]+$"; do
  holds "eval --text prints $line" grep -qE "$line" whole
done
expect 0 "^tokens" "" eval folder --text text.txt --context 32 --stride 16
holds "the folder gives the same as the run" cmp -s whole out
expect 0 "^perplexity [0-9.]+" "" eval folder --text text.txt --context 8 --stride 8

expect 2 "" "there is no prompt" generate run --tokens 1
expect 2 "" "prompt 2: the prompt is empty" generate run --tokens 1 --prompt a --prompt ""
expect 2 "" "No such file" generate run --tokens 1 --prompts missing.txt
expect 2 "" "--stop: must not be empty" generate run --tokens 1 --prompt a --stop ""
expect 2 "" "missing.txt" eval run --text missing.txt
expect 2 "" "their length of 8, not 9" eval run --text text.txt --context 8 --stride 9
expect 2 "" "stride.*requires.*text|requires --text" eval run --stride 9
finish
