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
holds "the folder has the run's tokenizer" [ -s folder/vocab.json -a -s folder/merges.txt ]
expect 0 "^the rain in spain, näh.$" "" generate folder --prompt "the rain" "${greedy[@]}"
expect 2 "" "needs a run: folder is a model folder" generate folder --prompt a --tokens 1 --checkpoint best

# A folder that has its definition, because transformers has no such model: xtape reads it as the run.
small=(--set data.text=words.txt --set steps=2 --set schedule.warmup=1 --set evaluate_every=2)
expect 0 "^own: step 2 " "step 2 of 2" train "$source/models/recipes/shakespeare_lstm.json" --out own "${small[@]}" --set hyper.width=8
expect 0 "^own_folder$" "^note: only xtape reads this folder, .* has no entry \"hugging_face\"" export own own_folder
holds "the folder generates as the run" same "$("$xtape" generate own --prompt "the rain" "${drawn[@]}")" \
  "$("$xtape" generate own_folder --prompt "the rain" "${drawn[@]}")"

# A teacher is frozen, and only the loss reads it: an export has the rest.
cat >taught.json <<END
{"xtape": 2, "name": "taught", "extends": "$source/models/gpt2.json",
 "model": {"modules": {"teacher": {"block": "embedding", "rows": "vocab_size", "width": "n_embd"}},
  "functions": {"loss": {"inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
   "do": ["x = mean(square(wte(tokens) - teacher(tokens)))"], "result": "x + mean(square(logits(tokens)))"}}}}
END
expect 0 "^taught: step 2 " "of them trained, step 0 of 2" train "$source/models/recipes/shakespeare_char.json" --out taught "${small[@]}" \
  --set definition=taught.json --set hyper.bias=true --set hyper.n_embd=32 --set hyper.n_layer=1 --set hyper.n_head=2 \
  --set 'start={"from": "'"$PWD"'/run", "take": "wte.weight", "into": "teacher.weight"}' --set 'frozen="teacher.*"' \
  --set "tokenizer={\"kind\": \"gpt2\", \"vocab\": \"$vocabulary/vocab.json\", \"merges\": \"$vocabulary/merges.txt\"}"
expect 0 "^taught_folder$" "^note: left out, because only the loss reads them and they are frozen: 1 weight .teacher.weight.$" export taught taught_folder
holds "the teacher is not in the folder" [ "$(grep -ac teacher taught_folder/model.safetensors)" = 0 ]
holds "the folder without the teacher generates as the run" same "$("$xtape" generate taught --prompt "the rain" "${drawn[@]}")" \
  "$("$xtape" generate taught_folder --prompt "the rain" "${drawn[@]}")"

# A language model of the texts of a table.
cat >rows.json <<END
{"xtape": 2, "name": "rows", "extends": "$source/models/gpt2.json",
 "model": {"functions": {"loss": {"inputs": {"tokens": "int [b, t]", "label": "int [b]"},
   "do": ["made = logits(tokens)"], "result": "cross_entropy(made[:, :-1], tokens[:, 1:])"}}}}
END
yes $'a\tthe rain\nb\tin spain' | head -n 40 >rows.tsv
expect 0 "^rows: step 2 " "step 2 of 2" train "$source/models/recipes/classify_texts.json" --out rows --set definition=rows.json \
  --set data.table=rows.tsv --set epochs=null --set steps=2 \
  --set 'hyper={"vocab_size": {"from": "vocabulary"}, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}'
expect 0 "^the" "" generate rows --prompt "the" --tokens 2

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
