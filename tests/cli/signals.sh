#!/bin/bash
# What a shell does to the program: signals, closed pipes, two trainings of one run, a full disk, folders that vanish.
# usage: signals.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
recipe=$source/models/recipes/adder.json
"$data_programs/sums" sums 1 20 && "$data_programs/sums" many 3 200000 || exit 1
small=(--set hyper.n_embd=8 --set hyper.n_layer=1 --set hyper.n_head=2 --set data.folder=sums
  --set batch.size=8 --set evaluate_every=10 --set schedule.warmup=1 --set steps=100000 --seed 3 --threads 1)
steps_done() { grep -c '"loss"' "$1/metrics.jsonl" 2>/dev/null || true; }
last_step() { grep -o '"step":[0-9]*,"loss"' "$1/metrics.jsonl" | tail -1 | grep -o '[0-9]*'; }
last_checkpoint() { ls "$1/checkpoints" | grep -x '[0-9]*' | tail -1 | sed 's/^0*//'; }
wait_for_steps() { # wait_for_steps RUN COUNT
  for _ in $(seq 600); do
    [ "$(steps_done "$1")" -gt "$2" ] 2>/dev/null && return 0
    sleep 0.05
  done
  return 1
}

# Each signal saves and says so by the exit code; nohup keeps SIGHUP away.
for signal in "INT 130 interrupted" "TERM 143 terminated" "HUP 129 hung.up"; do
  read -r name code word <<<"$signal"
  "$xtape" train "$recipe" --out "by$name" "${small[@]}" >out 2>err &
  training=$!
  wait_for_steps "by$name" 12
  kill -"$name" $training
  wait $training
  holds "SIG$name exits with $code" [ $? = "$code" ]
  holds "SIG$name is told" grep -q "^xtape: $word at step $(last_step "by$name"); to continue: xtape train by$name --resume" err
  holds "SIG$name saves the last step" same "$(last_step "by$name")" "$(last_checkpoint "by$name")"
done
trap '' HUP # as nohup does
"$xtape" train "$recipe" --out nohup "${small[@]}" >out 2>err &
training=$!
trap - HUP
wait_for_steps nohup 5
kill -HUP $training
sleep 0.2
holds "under nohup SIGHUP does nothing" kill -0 $training
kill -TERM $training
wait $training

# During an evaluation that takes minutes: at once, and the evaluation is made on resuming.
slow=("${small[@]}" --set data.folder=many --set evaluate_every=2)
"$xtape" train "$recipe" --out evaluating "${slow[@]}" >out 2>err &
training=$!
wait_for_steps evaluating 1
sleep 0.5 # the second step's evaluation has begun
kill -TERM $training
for _ in $(seq 200); do kill -0 $training 2>/dev/null && sleep 0.05; done
wait $training
holds "SIGTERM ends an evaluation" [ $? = 143 ]
holds "the step that was to be evaluated is saved" [ "$(last_checkpoint evaluating)" = 2 ]
holds "the evaluation is still to be made" grep -q '"evaluation_due": true' evaluating/checkpoints/00000002/state.json

# A second signal ends the program before it has saved.
"$xtape" train "$recipe" --out twice "${small[@]}" --set batch.size=100000 --set batch.accumulate=20 >out 2>err &
training=$!
for _ in $(seq 600); do grep -q "^run " err && break; sleep 0.05; done
sleep 0.3
kill -TERM $training
sleep 0.1 # the first one is noted; an update takes seconds
kill -INT $training 2>/dev/null
wait $training 2>/dev/null
holds "a second signal ends it at once" [ $? = 130 ]
holds "without saving" [ -s twice/recipe.json -a -z "$(last_checkpoint twice)" ]

# systemd sends SIGHUP right after SIGTERM.
"$xtape" train "$recipe" --out hung "${small[@]}" >out 2>err &
training=$!
wait_for_steps hung 12
kill -TERM $training
kill -HUP $training 2>/dev/null
wait $training
holds "SIGHUP after SIGTERM does not keep it from saving" same "$(last_step hung)" "$(last_checkpoint hung)"

# Who no longer reads does not end a training, but ends what only prints.
"$xtape" train "$recipe" --out piped "${small[@]}" --set steps=40 2>&1 | head -n 1 >out
holds "a closed pipe does not end a training" [ "${PIPESTATUS[0]}" = 0 -a "$(last_checkpoint piped)" = 40 ]
"$xtape" train "$recipe" --out closed "${small[@]}" --set steps=40 >&- 2>&- <&-
holds "nor do closed streams, which nothing is written into" [ $? = 0 -a "$(grep -c loss closed/metrics.jsonl)" = 44 ]
{ sleep 0.3; exec "$xtape" ops 2>err; } | true # whose reader has gone when it begins
holds "a closed pipe ends what prints, without a word" [ "${PIPESTATUS[0]}" = 141 -a ! -s err ]
for _ in $(seq 60); do echo "the rain in spain"; done >words.txt # a text, which no token ends
"$xtape" train "$source/models/recipes/shakespeare_char.json" --out endless --set data.text=words.txt --set steps=2 \
  --set schedule.warmup=1 --set data.block_size=16 --set hyper.n_embd=16 --set hyper.n_layer=1 >out 2>err
"$xtape" generate endless --prompt rain --tokens 100000 2>err | head -c 1 >out
holds "and what generates" [ "${PIPESTATUS[0]}" = 141 -a ! -s err ]
"$xtape" ops >/dev/full 2>err
holds "a full disk behind the standard output is an error" [ $? = 1 -a "$(cat err)" = "xtape: cannot write to the standard output" ]

# One process at a time.
"$xtape" train "$recipe" --out one "${small[@]}" >out.first 2>err.first &
training=$!
wait_for_steps one 12
expect 2 "" "^xtape: one is in use by process $training on .* since [0-9-]+ [0-9:]+: .*train .* --out one" train one --resume
expect 0 "^3\+4=" "" generate one --prompt 3+4= --tokens 4
kill -KILL $training
wait $training 2>/dev/null
holds "a killed training leaves no lock" "$xtape" train one --resume --set steps="$(($(last_checkpoint one) + 5))" >out 2>err

# Folders that vanish, disks that are full, checkpoints that break.
"$xtape" train "$recipe" --out gone "${small[@]}" >out 2>err &
training=$!
wait_for_steps gone 12
mv gone away && rm -rf away
wait $training
holds "a run that is deleted ends with 1" [ $? = 1 ]
holds "and says so" grep -q "^xtape: .*gone.*deleted meanwhile" err
holds "and is not made again" [ ! -e gone ]
small_files() (ulimit -f 4; TSAN_OPTIONS= exec "$xtape" "$@" >out 2>err)
needs "a program without ThreadSanitizer, which writes a file before it begins" small_files --version
small_files train "$recipe" --out full "${small[@]}"
code=$?
holds "files that may not grow end a training with 2 or 1" [ $code = 2 -o $code = 1 ]
holds "by one error" [ "$(grep -c '^xtape: cannot write .*: File too large' err)" = 1 ]
needs_nothing
truncate -s 100 piped/checkpoints/00000040/weights.safetensors
expect 2 "" "00000040/weights.safetensors.*; the checkpoint of step 30 is intact: --checkpoint 30 loads it" train piped --resume
expect 2 "" "--checkpoint 30 takes it" generate piped --prompt 3+4= --tokens 4
expect 0 "^3\+4=" "" generate piped --prompt 3+4= --tokens 4 --checkpoint 30
expect 0 "^piped: step 40 " "step 40 of 40" train piped --resume --checkpoint 30
holds "the broken checkpoint is set aside" [ -d piped/checkpoints/00000040.set-aside ]
expect 2 "" "a checkpoint must be last, best, average:N or the number of a step" generate piped --prompt 1 --tokens 1 --checkpoint x
finish
