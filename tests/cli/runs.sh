#!/bin/bash
# Runs from beginning to end: train, interrupt, resume, eval, generate, and errors.
# usage: runs.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
losses() { grep -o '"step":[0-9]*,"loss":[^,]*' "$1/metrics.jsonl"; }

# The demo's recipe, small enough to finish at once.
recipe=$source/models/recipes/adder.json
"$data_programs/sums" sums 1 20 || exit 1
small=(--set hyper.n_embd=8 --set hyper.n_layer=1 --set hyper.n_head=2 --set data.folder=sums
  --set batch.size=8 --set evaluate_every=10 --set schedule.warmup=1)

expect 0 "^whole: step 30  validation loss [0-9.]+  exact match [0-9.]+ % of 20$" "step 30 of 30  loss .* tokens/s  .* left" \
  train "$recipe" --out whole "${small[@]}" --set steps=30 --seed 3 --threads 2
holds "the run is complete" [ -s whole/definition.json -a -s whole/recipe.json -a -s whole/tokenizer.json -a -s whole/metrics.jsonl ]
holds "two checkpoints are kept" [ "$(ls whole/checkpoints)" = "00000020
00000030" ]
# A limit on address space, far below the machine's memory. (Sanitizers reserve more at program start; their messages
# about it are not reports.)
limited() (ulimit -v 3000000 && ASAN_OPTIONS= UBSAN_OPTIONS= "$xtape" "$@" >out 2>err)
needs "a program without a sanitizer or an emulator" limited --version
holds "a limit on address space stops no training" limited train "$recipe" --out limited "${small[@]}" --set steps=10 --threads 2
needs_nothing
expect 2 "" "whole is a run already: use --resume to continue it" train "$recipe" --out whole "${small[@]}"
expect 2 "" "whole is a run: use --resume to continue it" train whole
expect 2 "" "'steps' must be above 0: a recipe has 'steps' or 'epochs'" train "$recipe" --out none "${small[@]}" --set steps=0
# Of trainings that start at once, one makes the run.
begins_once() {
  local pids=() done=0 code
  rm -rf once
  for i in 1 2 3 4; do
    "$xtape" train "$recipe" --out once "${small[@]}" --set steps=1 --threads 1 >once$i 2>&1 &
    pids+=($!)
  done
  for i in 1 2 3 4; do
    wait "${pids[i - 1]}"
    code=$?
    [ $code = 0 ] && done=$((done + 1)) && continue
    [ $code = 2 ] && is_in "^xtape: once (already exists|is a run already|is in use by )" once$i || { cat once$i; return 1; }
  done
  [ $done = 1 -a ! -e once.writing ]
}
for _ in $(seq 10); do holds "of trainings that start at once, one makes the run, and the others say so" begins_once; done
expect 0 "whole: step 40 " "step 40 of 40" train whole --resume --set steps=40
expect 0 "^validation_loss [0-9.]+" "" eval whole
expect 0 "^exact_match [0-9.]+" "" eval whole
expect 0 "^questions 20" "" eval whole --set batch.size=3
expect 0 "^3\+4=[0-9]*" "" generate whole --prompt 3+4= --tokens 4
expect 0 "^3\+4=$" "" generate whole --prompt 3+4= --tokens 0
"$xtape" generate whole --prompt 3+4= --tokens 4 --temperature 0.8 --top-k 5 --top-p 0.9 --seed 7 >first 2>/dev/null
expect 0 "^3" "" generate whole --prompt 3+4= --tokens 4 --temperature 0.8 --top-k 5 --top-p 0.9 --seed 7
holds "a seed gives the same text again" cmp -s first out

# xtape profile writes no run.
expect 0 "^ +[0-9.]+ +[0-9.]+ % +[0-9]+ +[0-9.]+ +[0-9.]+  einsum$" "" profile "$recipe" "${small[@]}" --steps 2
holds "a profile includes the time outside the ops" grep -q "(optimizer)" out
expect 0 " h\.0\.mlp\.c_fc$" "" profile "$recipe" "${small[@]}" --steps 2 --sites --threads 1
expect 0 '"op": "einsum"' "" profile "$recipe" "${small[@]}" --steps 1 --json
holds "a profile's JSON lists the rules" grep -q '"rules"' out
expect 0 "einsum" "" profile "$recipe" "${small[@]}" --steps 1 --trace trace.json
holds "a trace has the steps, the optimizer and the memory" python3 -c '
import json
events = json.load(open("trace.json"))["traceEvents"]
names = {event["name"] for event in events}
steps = [event for event in events if event["ph"] == "X" and event["name"] == "einsum"]
assert {"einsum", "optimizer", "memory"} <= names and any(step["args"]["module"] == "h.0.mlp.c_fc" for step in steps)'
# Predictions for more threads.
expect 0 "^[0-9.]+ ms on 16 threads, [0-9.]+ ms on one: [0-9.]+ times as fast, efficiency [0-9.]+$" "" \
  profile "$recipe" "${small[@]}" --steps 2 --as-if-threads 16
holds "a prediction names ops and what keeps the threads idle" grep -qE " %  .*(serial code|too few pieces|uneven pieces|meetings|memory) \([0-9]+ %\)$" out
expect 0 "^2.60 us per meeting, 40.0 GB/s, cache 8 MiB$" "" \
  profile "$recipe" "${small[@]}" --steps 1 --as-if-threads 3 --meeting 2.5us --memory-bandwidth 40GB --cache 8MiB
expect 0 '"site": "h.0.mlp.c_fc"' "" profile "$recipe" "${small[@]}" --steps 2 --as-if-threads 64 --sites --json
holds "the rows of a prediction add up" python3 -c '
import json
found = json.load(open("out"))
rows = found["rows"]
assert found["threads"] == 64 and abs(found["efficiency"] * 64 - found["speed_up"]) < 1e-9
assert abs(sum(row["ms"] for row in rows) - found["ms"]) < 1e-6 * found["ms"]
assert {"(optimizer)", "(batches)", "(rest)"} <= {row["site"] for row in rows}
for row in rows:
    parts = ("few_pieces_ms", "uneven_pieces_ms", "meetings_ms", "memory_ms")
    lost = 63 * row["serial_ms"] + 64 * sum(row[part] for part in parts)
    assert abs(lost - row["lost_ms"]) < 1e-6 * max(1, abs(lost)), row'
expect 0 "expected on 2 hosts with 10Gbit and 0.05 ms: [0-9.]+ ms per update, [0-9.]+ times as fast as one$" "" \
  profile "$recipe" "${small[@]}" --set batch.shards=2 --steps 2 --as-if-threads 4 --ranks 2
expect 0 '"expected"' "" \
  profile "$recipe" "${small[@]}" --set batch.shards=2 --steps 2 --as-if-threads 4 --ranks 2 --json --sites
holds "the time on several hosts adds up, from the times of as many threads" python3 -c '
import json
found = json.load(open("out"))
expected, update = found["expected"], [row["ms"] for row in found["rows"] if row.get("site") == "(optimizer)"]
parts = ("plays_ms", "after_plays_ms", "update_ms", "all_gather_ms", "latencies_ms")
assert abs(sum(expected[part] for part in parts) - expected["ms"]) < 1e-6 * expected["ms"]
assert abs(expected["update_ms"] - update[0] / 2) < 1e-6 and expected["reduce_scatter_ms"] > 0
assert abs(expected["plays_ms"] - (found["ms"] - update[0]) / 2) < 1e-6 * found["ms"]'
expect 2 "" "3 ranks need at least as many shards" profile "$recipe" "${small[@]}" --as-if-threads 4 --ranks 3
for number in 0 -1 4097; do
  expect 2 "" "--as-if-threads: .*1 to 4096" profile "$recipe" --as-if-threads $number
done
expect 2 "" "--as-if-threads" profile "$recipe" --as-if-threads many
expect 2 "" "--as-if-threads" profile "$recipe" --meeting 2us
expect 2 "" "--as-if-threads" profile "$recipe" --as-if-threads 2 --threads 2
expect 2 "" "--meeting '2' must be a number above 0 with one of the units ms, ns, us: 2us" profile "$recipe" --as-if-threads 2 --meeting 2
expect 2 "" "--memory-bandwidth 'fast' must be a number above 0" profile "$recipe" --as-if-threads 2 --memory-bandwidth fast
expect 2 "" "--cache must be a size" profile "$recipe" --as-if-threads 2 --cache much
# Memory budgets.
expect 2 "" "the plan needs at least .* bytes\), but its memory limit is 1.00 KiB .*for parameters" plan "$recipe" "${small[@]}" --memory 1KiB
expect 2 "" "--memory must be a size" plan "$recipe" "${small[@]}" --memory much
expect 2 "" "'memory' must be a size such as" train "$recipe" --out much "${small[@]}" --set memory=300
expect 2 "" "training needs at least [0-9.]+ MiB of memory, but 'memory' is 1 byte: " train "$recipe" --out tiny "${small[@]}" --set 'memory="1 byte"'
holds "a refused limit leaves no folder" [ ! -e tiny -a ! -e tiny.writing ]
large=(--set hyper.n_embd=96 --set hyper.n_layer=4 --set hyper.n_head=4 --set data.folder=sums --set batch.size=512
  --set schedule.warmup=1 --set steps=2 --set evaluate_every=2 --set seed=3)
expect 0 "^ +[0-9.]+ MiB +[0-9.]+ MiB +\+ +0.0 % +0$" "" plan "$recipe" "${large[@]}"
least=$(grep -oE "^ +[0-9.]+ MiB" out | tail -1 | tr -dc 0-9.)
expect 0 "steps, [1-9][0-9]* of them again; " "" plan "$recipe" "${large[@]}" --memory "$(python3 -c "print($least + 1)") MiB"
expect 0 "step 2" "step 2" train "$recipe" --out unbounded "${large[@]}"
bounded() { # prints the peak resident memory in MiB
  python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)' "$xtape" train "$recipe" --out bounded "${large[@]}" --set 'memory="130 MiB"'
}
needs "a program without a sanitizer or an emulator" limited --version
peak=$(bounded)
holds "the process keeps to the memory of its recipe, not $peak MiB" python3 -c "assert 40 < $peak <= 130"
holds "a memory budget changes no bits" cmp unbounded/checkpoints/00000002/weights.safetensors bounded/checkpoints/00000002/weights.safetensors
# Batches of many shapes, and answers: each limit is kept to, with equal weights, and the least that is said is the least.
holds "shapes share the memory of a recipe" python3 "$source/scripts/memory_limits.py" --program "$xtape" --only reversing --limits 3 --bisect
needs_nothing
expect 2 "" "no_such_recipe" profile no_such_recipe.json
expect 2 "" "steps" profile "$recipe" --steps 0
expect 2 "" "is a recipe, which takes no --in$" profile "$recipe" --in inputs.safetensors
expect 2 "" "is a recipe, which takes no --with$" profile "$recipe" --with b=2
holds "a profile leaves no files" [ ! -e runs ]

# Ctrl-C saves a checkpoint; resuming gives the same losses as an uninterrupted run.
"$xtape" train "$recipe" --out parts "${small[@]}" --set steps=100000 --seed 3 >out 2>err &
training=$!
more_losses() { [ -e "$1" ] && [ "$(grep -c loss "$1")" -gt "$2" ]; } # more_losses FILE COUNT
wait_until more_losses parts/metrics.jsonl 25
kill -INT $training
wait $training
holds "Ctrl-C exits with 130" [ $? = 130 ]
holds "the message of Ctrl-C tells how to continue" grep -q "to continue: xtape train parts --resume" err
holds "Ctrl-C leaves the last step's checkpoint" \
  [ "$(ls parts/checkpoints | tail -1 | sed 's/^0*//')" = "$(losses parts | tail -1 | grep -o 'step":[0-9]*' | cut -d: -f2)" ]
# The schedule depends on the number of steps, so the reference run has as many.
step=$(ls parts/checkpoints | tail -1 | sed 's/^0*//')
"$xtape" train "$recipe" --out reference "${small[@]}" --set steps=$((step + 5)) --set schedule.steps=100000 --seed 3 >out 2>err
expect 0 "parts: step $((step + 5)) " "step [0-9]+ of" train "$recipe" --out parts --resume --set steps=$((step + 5)) --set schedule.steps=100000
holds "the resumed run has the same losses" [ "$(losses parts | grep -c step)" = $((step + 5)) -a "$(losses parts)" = "$(losses reference)" ]

# A non-finite loss: exit code 1, the op and its line in the message, and the last good checkpoint is kept.
expect 1 "" "loss of update 2 is not finite: .*$(basename "$source")/models/[a-z0-9_/]+.json, .*line [0-9]+" train "$recipe" --out broken "${small[@]}" \
  --set 'schedule={"kind": "constant", "rate": 1e36}' --set clip=0 --set optimizer.weight_decay=0 --set checkpoint_every=1
holds "the last good checkpoint is kept" [ "$(ls broken/checkpoints)" = 00000001 ]

# Wrong arguments and wrong input: exit code 2, and no files are left.
expect 2 "" "'step' is not a known key; did you mean 'steps'" train "$recipe" --out none --set step=3
expect 2 "" "'schedule' is wrong" train "$recipe" --out none --set steps=50
expect 2 "" "n_layer" train "$recipe" --out none --set data.folder=sums --set hyper.n_layers=3
expect 2 "" "key=value" train "$recipe" --out none --set steps
expect 2 "" "use --set data.text=FILE" train "$source/models/recipes/shakespeare_char.json" --out none
expect 2 "" "training.txt: No such file or directory; give the file with --set data.text=FILE, or its directory with --set data.folder=DIRECTORY" train "$recipe" --out none
expect 2 "" "No such file" train "$source/models/recipes/shakespeare_char.json" --out none --set data.text=missing.txt
expect 2 "" "n_head|n_embd|exact" train "$recipe" --out none --set data.folder=sums --set hyper.n_embd=9 --set hyper.n_head=2
expect 2 "" "'epochs' needs epochs, which this data does not have" train "$source/models/recipes/shakespeare_char.json" --out none \
  --set data.text=words.txt --set epochs=2
# Privacy: evaluations say epsilon, which depends on updates, noise and the share of rows alone; resuming goes on.
private=(--set 'privacy={"clip_norm": 1, "noise_multiplier": 2, "delta": 1e-3}' --set batch.size=10 --set batch.accumulate=4
  --set evaluate_every=2 --set schedule.steps=10)
expect 0 "^private: step 4  validation loss [0-9.]+  exact match [0-9.]+ % of 20  epsilon 1\.922$" "step 2  .*  epsilon 1\.360$" \
  train "$recipe" --out private "${small[@]}" "${private[@]}" --set steps=4
holds "epsilon is a metric" grep -q '"step":4,.*"epsilon":1\.92' private/metrics.jsonl
expect 0 "^private: step 10  .*  epsilon 3\.115$" "step 10 of 10" train private --resume --set steps=10  # as Opacus has it
"$xtape" train "$recipe" --out unresumed "${small[@]}" "${private[@]}" --set steps=10 >out 2>err
holds "a resumed private run has the same bits" \
  cmp private/checkpoints/00000010/weights.safetensors unresumed/checkpoints/00000010/weights.safetensors
expect 2 "" "'privacy.noise_multiplier' is 2 in this run and cannot become 1: epsilon holds only if all updates have the same noise" train private --resume --set steps=12 --set privacy.noise_multiplier=1
expect 2 "" "'privacy.delta' must be above 0 and below 1" train "$recipe" --out none "${small[@]}" "${private[@]}" --set privacy.delta=1
expect 2 "" "a draw has 50 \* 4 rows on average .* more than the 80 of" train "$recipe" --out none "${small[@]}" "${private[@]}" \
  --set batch.size=50
expect 2 "" "'privacy' protects rows, which data of kind 'text' does not have" train "$source/models/recipes/shakespeare_char.json" \
  --out none --set data.text=words.txt --set schedule.warmup=1 "${private[@]}"
holds "errors leave no run" [ ! -e none ]
expect 2 "" "is not a run" train none --out none --resume
expect 0 "^[0-9+=]*$" "" generate whole --prompt "" --tokens 1 # texts begin with a start token
expect 2 "" "character 'x'" generate whole --prompt x --tokens 1
expect 2 "" "top-p" generate whole --prompt 1 --tokens 1 --top-p 1.5
expect 2 "" "is not a run" eval none

# Without --out, the run is runs/NAME-DATE.
expect 0 "^runs/adder-[0-9]{8}-[0-9]{6}: step 2 " "step 2 of 2" train "$recipe" "${small[@]}" --set steps=2
# The user's text; the path is relative to the working directory.
for _ in $(seq 60); do echo "the rain in spain stays mainly in the plain"; done >words.txt
expect 0 "text: step 20 " "step 20 of 20" train "$source/models/recipes/shakespeare_char.json" --out text --set data.text=words.txt \
  --set steps=20 --set schedule.warmup=5 --set data.block_size=16 --set hyper.n_embd=16 --set hyper.n_layer=1
expect 0 "^loss_of_20_random_batches [0-9.]+" "" eval text
expect 2 "" "the prompt is empty" generate text --prompt "" --tokens 1
expect 0 "text: step 22 " "step 22 of 22" train "$source/models/recipes/shakespeare_char.json" --out text --resume --set steps=22
expect 2 "" "text is a run of recipe 'shakespeare_char', not of 'adder'" train "$recipe" --out text --resume
expect 0 "words: step 9 " "step 9 of 9" train "$source/models/recipes/shakespeare_char.json" --out words --set data.text=words.txt \
  --set 'tokenizer={"kind": "words"}' --set steps=9 --set schedule.warmup=5 --set data.block_size=8 --set hyper.n_embd=16 \
  --set hyper.n_layer=1
expect 0 "^the rain [a-z<]+ [a-z<]+" "" generate words --prompt "the rain" --tokens 5
# GPT-2's tokenizer: its two files are copied into the run.
cp -r "$source/tests/golden/data/gpt2_small" vocabulary
expect 0 "bytes: step 3 " "step 3 of 3" train "$source/models/recipes/shakespeare_char.json" --out bytes --set data.text=words.txt \
  --set 'tokenizer={"kind": "gpt2", "vocab": "vocabulary/vocab.json", "merges": "vocabulary/merges.txt"}' --set steps=3 \
  --set schedule.warmup=1 --set data.block_size=8 --set hyper.n_embd=16 --set hyper.n_layer=1
expect 0 "^the Ġ r a in , Ġa t Ġ 8$" "" tokenize vocabulary --pieces <<<"the rain, at 8"
"$xtape" tokenize vocabulary <<<"the räin, at 8" >numbers
rm -r vocabulary
holds "GPT-2's files are in the run" [ -s bytes/tokenizer.json -a -s bytes/vocab.json -a -s bytes/merges.txt ]
expect 0 "^the räin, at 8$" "" tokenize bytes --detokenize <numbers
expect 0 "^the rain" "" generate bytes --prompt "the rain" --tokens 5
mv bytes/merges.txt away
expect 2 "" "bytes/merges.txt': No such file" tokenize bytes --detokenize <numbers
rm words.txt
expect 0 "^the rain" "" generate text --prompt "the rain" --tokens 40
expect 2 "" "No such file" eval text
finish
