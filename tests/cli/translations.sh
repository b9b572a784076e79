#!/bin/bash
# Training on sentence pairs, and translating with the trained run.
# usage: translations.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export OMP_NUM_THREADS=2

# The demo's recipe, small enough to finish at once; nothing useful is learnt.
recipe=$source/models/recipes/number_words.json
"$data_programs/number_words" words 300 20 || exit 1
small=(--set data.folder=words --set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2 --set hyper.encoder_layers=1
  --set hyper.decoder_layers=1 --set batch.size=32 --set search.max_length=12)

expect 0 "^run: step 20 .* perplexity [0-9.]+  accuracy [0-9.]+ %  exact match [0-9.]+ % of 20$" "step 20 of 20" \
  train "$recipe" --out run "${small[@]}" --set steps=20 --set evaluate_every=epoch --set schedule.warmup=1 --seed 5
holds "there are checkpoints of an epoch, of the end and of the best evaluation" [ "$(ls run/checkpoints)" = "00000010
00000020" ]
expect 0 "^perplexity [0-9.]+" "" eval run
expect 0 "^run: nothing to do: already at step 20$" "step 20 of 20" train run --resume
expect 0 "^step 20$" "" eval run --checkpoint average:2
expect 0 "^exact_match [0-9.]+" "" eval run --checkpoint best
expect 2 "" "has 2 checkpoints, fewer than the 3 to average" eval run --checkpoint average:3
expect 2 "" "a checkpoint must be last, best, average:N, ema or the number of a step, not 'first'" eval run --checkpoint first

# Every input line gives one output line, in order, for any content.
{ echo "duzentos e um"; echo; printf '\xff\xfe\n'; echo "palavra desconhecida"; printf 'sete %.0s' $(seq 2000); echo; echo "dois"; } >source
for how in "--beam 1" "--beam 3 --length-penalty 0.6" "--beam 3 --penalty power --length-penalty 1" "--batch 1"; do
  # shellcheck disable=SC2086
  "$xtape" translate run $how <source >out 2>err
  holds "translate $how: exit code 0" [ $? = 0 ]
  holds "translate $how: one line per input line" [ "$(wc -l <out)" = 6 ]
  holds "translate $how: an empty line stays empty" [ -z "$(sed -n 2p out)" ]
  holds "translate $how: valid lines are translated" [ -n "$(sed -n 1p out)" -a -n "$(sed -n 6p out)" ]
  holds "translate $how: a line that is not UTF-8 is reported" grep -q "line 3: the text is not UTF-8" err
  holds "translate $how: a line that is too long is reported" grep -q "line 5: has 2002 tokens, start and end included" err
done
"$xtape" translate run <source >translated 2>/dev/null
expect 0 "." "^line 1: the model does not know 'Tres', 'Mil'$" translate run <<<"Tres Mil Tres"
printf 'dois' | "$xtape" translate run >out 2>err
holds "a last line without a line end is a line" [ "$(cat out)" = "$(sed -n 6p translated)" ]
"$xtape" translate run --beam 4 --n-best 3 <source >out 2>err
holds "n-best: three candidates for each translated line, one for others" [ "$(wc -l <out)" = $((3 + 1 + 1 + 3 + 1 + 3)) ]
holds "n-best: number, text and score" grep -q -E '^6 \|\|\| .* \|\|\| -[0-9.]+' out
expect 0 "^$" "" translate run <<<""
expect 2 "" "needs a --beam of at least that, not 1" translate run --n-best 2 <<<"dois"
expect 2 "" "is not a run" translate none <<<"dois"

expect 2 "" "run: the model translates: use xtape translate" generate run --prompt dois --tokens 3

# A folder with two tokenizers.
expect 0 "^pairs_folder$" "^note: only xtape reads this folder" export run pairs_folder
holds "the folder translates as the run" same "$("$xtape" translate run --beam 1 --max-length 12 <source 2>/dev/null)" \
  "$("$xtape" translate pairs_folder --beam 1 --max-length 12 <source 2>/dev/null)"
expect 2 "" "pairs_folder: the model translates: use xtape translate" generate pairs_folder --prompt dois --tokens 3

# Ctrl-C while the program waits for input.
mkfifo lines
"$xtape" translate run <lines >out 2>err &
exec 3>lines
echo "dois" >&3
wait_until test -s out
holds "a line is translated when it arrives" [ "$(cat out)" = "$(sed -n 6p translated)" ]
kill -INT $!
wait $!
holds "Ctrl-C while waiting exits with 130" [ $? = 130 ]
exec 3>&-

# xtape tokenize and back.
echo "duzentos e um" >line
expect 0 "^duzentos e um$" "" tokenize run --pieces <line
expect 0 "^[0-9]+ [0-9]+ [0-9]+$" "" tokenize run <line
"$xtape" tokenize run <line >numbers
expect 0 "^duzentos e um$" "" tokenize run --detokenize <numbers
expect 0 "^<unk> <unk> <unk>$" "" tokenize run --target --pieces <line
expect 2 "" "line 1: 'duzentos' is not a token number" tokenize run --detokenize <line
expect 2 "" "line 1: token 99999" tokenize run --detokenize <<<99999

{ printf 'sete %.0s' $(seq 40000); echo; echo "dois"; } >long # longer than the read buffer
"$xtape" tokenize run <long >out 2>err
holds "a very long line is one line" [ "$(wc -l <out)" = 2 -a "$(head -n 1 out | wc -w)" = 40000 ]

# The user's files: one sentence per line, plain or compressed.
for i in $(seq 1 9) $(seq 2 2 40) $(seq 3 7 90); do printf 'ein haus nummer %d\n' $((i % 13)); done >train.de
sed 's/ein haus nummer/a house number/' train.de >train.en
head -n 5 train.de >valid.de
head -n 5 train.en >valid.en
gzip -c train.de >train.de.gz
two_files=(--set data="{\"kind\": \"pairs\", \"folder\": \".\", \"source\": \"train.de.gz\", \"target\": \"train.en\",
  \"validation_source\": \"valid.de\", \"validation_target\": \"valid.en\"}" --set steps=6 --set epochs=100
  --set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2 --set hyper.encoder_layers=1 --set hyper.decoder_layers=1)
expect 0 "files: step 6 .* BLEU [0-9.]+" "step 6 of 6" train "$recipe" --out files "${two_files[@]}" --set 'measure=["bleu"]' \
  --set 'tokenizer={"kind": "sentencepiece", "model": "bpe", "vocabulary_size": 40, "joint": true}' --set batch.size=8 \
  --set schedule.warmup=1
holds "the tokenizer's model is in the run" [ -s files/tokenizer.model ]
expect 0 "ein .*h.*s" "" tokenize files --pieces <<<"ein haus"
rm train.*
expect 0 "." "" translate files <<<"ein haus nummer 3"
expect 0 "^tokens [0-9]+" "" eval files --source valid.de --target valid.en
expect 0 "^bleu [0-9.]+" "" eval files --source valid.de --target valid.en
expect 2 "" "none of the 2 pairs of lines has words on both sides" eval files --source <(printf '\n\n') --target <(printf 'a\n\n')
expect 2 "" "valid.de --source requires --target|requires --target" eval files --source valid.de
expect 2 "" "No such file|cannot read" train "$recipe" --out none "${two_files[@]}" --set schedule.warmup=1
holds "errors leave no run" [ ! -e none ]

# A run stopped by --minutes in an epoch and continued has the same bits.
expect 0 "part: the time limit was reached at step [0-9]+; to continue: xtape train part --resume" "step" train "$recipe" --out part \
  "${small[@]}" --set steps=2000000 --set schedule.steps=40 --set schedule.warmup=1 --seed 3 --minutes 0.02
step=$(ls part/checkpoints | tail -1 | sed 's/^0*//')
expect 0 "part: step $((step + 3)) " "step" train part --resume --set steps=$((step + 3))
expect 0 "whole: step $((step + 3)) " "step" train "$recipe" --out whole "${small[@]}" --set steps=$((step + 3)) \
  --set schedule.steps=40 --set schedule.warmup=1 --seed 3
last=$(ls whole/checkpoints | tail -1)
holds "a resumed run has the same weights" cmp -s {part,whole}/checkpoints/$last/weights.safetensors
finish
