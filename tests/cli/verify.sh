#!/bin/bash
# The command verify, and diff of ledgers: runs of other instruction sets, killed and resumed runs, changed files.
# usage: verify.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
"$data_programs/sums" sums 1 20 || exit 1
recipe=$source/models/recipes/adder.json
small=(--set hyper.n_embd=8 --set hyper.n_layer=1 --set hyper.n_head=2 --set data.folder=sums --set batch.size=8
  --set evaluate_every=20 --set schedule.warmup=1 --set schedule.steps=60 --set seed=3 --threads 2)
updates() { grep '"update"' "$1/ledger.jsonl" | sed 's/,"seal".*//'; } # updates RUN: their lines in its ledger, without seals
train() { "$xtape" train "$recipe" --out "$1" "${small[@]}" "${@:2}" >out 2>err || { cat err && false; }; }
copy() { rm -rf copy && cp -r run copy; }
change_byte() { # change_byte FILE: in its middle
  python3 -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[1], "wb").write(data)' "$1"
}
state_of() { find "$1" -type f -printf '%p %T@ ' -exec cksum {} \; | sort; } # state_of RUN: its files, and their times

holds "a run is trained" train run --set steps=60
before=$(state_of run)
expect 0 "^2 files|^[0-9]+ files and 2 checkpoints of run are those of its ledger$" "" verify run
holds "the first updates are replayed" grep -q "^updates 1 to 16 from the initial weights: the same bits$" out
holds "and those after a checkpoint" grep -q "^updates 41 to 48 from checkpoint 40: the same bits$" out
holds "and counted" grep -q "^run: 24 updates replayed, with the same bits$" out
expect 0 "^update 41 from checkpoint 40: the same bits$" "" verify run --updates 7,41 --threads 1
holds "of several updates, each" grep -q "^updates 1 to 7 from the initial weights: the same bits$" out
expect 0 "^run: [0-9]+ updates? replayed, with the same bits$" "" verify run --sample 3
holds "nothing is written to the run" same "$before" "$(state_of run)"
expect 2 "" "has no update 61; its last is 60" verify run --updates 61
expect 2 "" "--updates" verify run --updates 0
expect 2 "" "--sample" verify run --updates 3 --sample 3
expect 2 "" "--ops needs --updates with one number" verify run --updates 3,4 --ops ops.json
expect 2 "" "is not a run" verify nowhere

# Other instruction sets.
on_set() { XTAPE_ISA=$1 "$xtape" "${@:2}" >out 2>err; } # on_set SET WORD…
case $(instruction_sets) in neon*) narrow=neon wide=i8mm ;; *) narrow=avx2 wide=avx512 ;; esac
has_wide() { XTAPE_ISA=$wide "$xtape" --version | grep -q "instruction set $wide"; }
holds "a run on $narrow" on_set $narrow train "$recipe" --out on_narrow "${small[@]}" --set steps=60
needs "a processor with $wide" has_wide
holds "a run on $wide" on_set $wide train "$recipe" --out on_wide "${small[@]}" --set steps=60
holds "has the same bits" same "$(updates on_narrow)" "$(updates on_wide)"
holds "and is verified on the other set" on_set $narrow verify on_wide --updates 60
holds "which says so" is_in "^trained by xtape [0-9.]+ on $wide, replayed by xtape [0-9.]+ on $narrow$" out
expect 0 "^the losses and gradient norms of 60 updates are the same$" "" diff on_narrow/ledger.jsonl on_wide
needs_nothing

# Killed at any time, resumed, and verified.
"$xtape" train "$recipe" --out killed "${small[@]}" --set steps=100000 --set checkpoint_every=5 >out 2>err &
training=$!
has_updates() { [ -e "$1/ledger.jsonl" ] && [ "$(updates "$1" | wc -l)" -gt "$2" ]; } # has_updates RUN COUNT
wait_until has_updates killed 23
kill -KILL $training
wait $training 2>err
step=$(ls killed/checkpoints | grep -x '[0-9]*' | tail -1 | sed 's/^0*//')
printf '{"update":' >>killed/ledger.jsonl
expect 0 "^killed: step $((step + 30))" "run killed" train killed --resume --set steps=$((step + 30)) --set evaluate_every=0
holds "a killed and resumed run has the updates of its ledger once" [ "$(updates killed | wc -l)" = $((step + 30)) ]
expect 0 "^killed: [0-9]+ updates replayed, with the same bits$" "" verify killed
expect 0 "^killed: [0-9]+ updates replayed, with the same bits$" "" verify killed --updates $((step + 30))

# What has been changed is named, with one sentence.
one_line() { [ "$(wc -l <out)" = 1 ] && [ "$(wc -l <err)" = 1 ]; }
copy
change_byte copy/checkpoints/00000060/weights.safetensors
expect 1 "^copy/checkpoints/00000060/weights.safetensors differs from the ledger$" "^xtape: copy is not the run of its ledger$" verify copy
holds "by one sentence" one_line
copy
sed -i 's/\("update":16,.*"weights":"\)./\1x/' copy/ledger.jsonl
expect 1 "^copy/ledger.jsonl, lines 2 to 17: the digest in line 17 is of another text" "is not the run of its ledger" verify copy
holds "by one sentence" one_line
copy
sed -i 's/"clip": *[0-9.]*/"clip": 0.5/' copy/recipe.json
expect 1 "^copy/recipe.json differs from the ledger: it was another file during the training$" "is not the run" verify copy
cp -r sums other_sums
sed -i '3s/.*/9+9=17/' other_sums/training.txt
expect 1 "other_sums/training.txt differs from the ledger: the data was another one during the training$" "is not the run" \
  verify run --set data.folder=other_sums
sed -i '3s/.*/'"$(sed -n 3p sums/training.txt)"'/' other_sums/training.txt
expect 0 "with the same bits$" "" verify run --set data.folder=other_sums
copy
rm copy/ledger.jsonl
expect 2 "" "^xtape: copy has no ledger.jsonl: it was not trained, or by an earlier version of xtape; a further training begins a ledger$" verify copy

# The first update and the first op that differ.
expect 0 "^the losses and gradient norms of 60 updates are the same$" "" diff run/ledger.jsonl on_narrow
holds "another run" train other --set steps=60 --set optimizer.weight_decay=0.3
expect 1 "^the losses and gradient norms of [1-9] updates are the same; those of update ([2-9]|10) differ$" "differ$" diff run/ledger.jsonl other/ledger.jsonl
holds "with the bits of both" grep -q -E "^  loss [0-9.]+ and [0-9.]+, bits [0-9a-f]{16} and [0-9a-f]{16}$" out
holds "and the digest before" grep -q "^  the initial weights are the same$" out
holds "another seed" train seed --set steps=20 --set seed=4
expect 1 "^  the initial weights differ already$" "differ$" diff run/ledger.jsonl seed
expect 2 "" "'run/ledger.jsonl' is a ledger and '$recipe' is a recipe: diff takes two of one kind" diff run/ledger.jsonl "$recipe"
expect 0 "with the same bits$" "" verify run --updates 3 --ops ops.json
expect 0 "with the same bits$" "" verify other --updates 3 --ops other.json
expect 1 "^first: " "differ$" diff ops.json other.json
holds "op and line are named" grep -q -E "^first: .* at .*line [0-9]+\)|^first: .*\(parameter\)" out
finish
