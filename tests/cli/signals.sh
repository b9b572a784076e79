#!/bin/bash
# Signals, closed pipes, two processes that train one run, a full disk, and removed folders.
# usage: signals.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
recipe=$source/models/recipes/adder.json
"$data_programs/sums" sums 1 20 && "$data_programs/sums" many 3 200000 || exit 1
small=(--set hyper.n_embd=8 --set hyper.n_layer=1 --set hyper.n_head=2 --set data.folder=sums
  --set batch.size=8 --set evaluate_every=10 --set schedule.warmup=1 --set steps=100000 --seed 3 --threads 1)
steps_done() { grep -c '"loss"' "$1/metrics.jsonl" 2>/dev/null || true; }
last_step() { grep -o '"step":[0-9]*,"loss"' "$1/metrics.jsonl" | tail -1 | grep -o '[0-9]*'; }
last_checkpoint() { ls "$1/checkpoints" | grep -x '[0-9]*' | tail -1 | sed 's/^0*//'; }
more_steps() { [ "$(steps_done "$1")" -gt "$2" ] 2>/dev/null; } # more_steps RUN COUNT
wait_for_steps() { wait_until more_steps "$@"; }                # wait_for_steps RUN COUNT

hangs_up() { # whether programs that start here heed SIGHUP; under nohup they do not
  [ $((0x$(sed -n 's/^SigIgn:\s*//p' /proc/self/status) & 1)) = 0 ]
}

# Each signal saves a checkpoint and determines the exit code; nohup ignores SIGHUP.
for signal in "INT 130 interrupted" "TERM 143 terminated" "HUP 129 hung.up"; do
  read -r name code word <<<"$signal"
  [ "$name" != HUP ] || needs "a SIGHUP that is not ignored" hangs_up
  "$xtape" train "$recipe" --out "by$name" "${small[@]}" >out 2>err &
  training=$!
  wait_for_steps "by$name" 12
  [ -z "$missing" ] || kill -TERM $training
  kill -"$name" $training
  wait $training
  holds "SIG$name exits with $code" [ $? = "$code" ]
  holds "SIG$name is told" grep -q "^xtape: $word at step $(last_step "by$name"); to continue: xtape train by$name --resume" err
  holds "SIG$name saves the last step" same "$(last_step "by$name")" "$(last_checkpoint "by$name")"
  needs_nothing
done
trap '' HUP # as nohup does
"$xtape" train "$recipe" --out nohup "${small[@]}" >out 2>err &
training=$!
trap - HUP
wait_for_steps nohup 5
kill -HUP $training
holds "under nohup SIGHUP does nothing" wait_for_steps nohup "$(($(steps_done nohup) + 20))"
kill -TERM $training
wait $training

# A page of a mapped file that is gone ends a program by SIGBUS.
"$xtape" train "$recipe" --out bus "${small[@]}" >out 2>err &
training=$!
wait_for_steps bus 5
kill -BUS $training
wait $training
holds "a lost page is failed work" [ $? = 1 ]
holds "a lost page is told" grep -q "^xtape: a page of a file is gone" err

# A signal during an evaluation, which would take minutes, ends it, and the evaluation is made on resuming.
slow=("${small[@]}" --set data.folder=many --set evaluate_every=2)
"$xtape" train "$recipe" --out evaluating "${slow[@]}" >out 2>err &
training=$!
wait_for_steps evaluating 1 # the evaluation of the second step follows
kill -TERM $training
wait $training
holds "SIGTERM ends an evaluation" [ $? = 143 ]
holds "the step of the interrupted evaluation is saved" [ "$(last_checkpoint evaluating)" = 2 ]
holds "the evaluation is still due" grep -q '"evaluation_due": true' evaluating/checkpoints/00000002/state.json

# A second signal ends the program at once. Here it cannot go on after the first one: nobody reads the pipe, which holds
# less than it prints for a thousand lines, and only then it looks for signals.
for _ in $(seq 1000); do printf '1+2=3%.0s' $(seq 300); echo; done >sums.txt
mkfifo unread && exec 3<>unread
"$xtape" tokenize byINT <sums.txt >unread 2>err &
tokenizing=$!
wait_until handles $tokenizing 15
kill -TERM $tokenizing
holds "the first signal is received" wait_until handles_none $tokenizing 15
holds "and does not end what it interrupts" handles_none $tokenizing 2
kill -INT $tokenizing
wait $tokenizing 2>/dev/null
holds "a second signal ends it at once" [ $? = 130 ]
exec 3>&-

# So it does before a training saves. The training cannot go on after its first evaluation, which it prints to a full pipe.
mkfifo messages && exec 4<>messages
fill() { # leaves no byte of room
  dd if=/dev/zero of=messages oflag=nonblock bs=4096 count=1000 2>dd.err
  dd if=/dev/zero of=messages oflag=nonblock bs=1 count=5000 2>dd.err
}
for every in 300 3000 30000; do
  "$xtape" train "$recipe" --out twice.$every "${small[@]}" --set evaluate_every=$every --set checkpoint_every=1000000 \
    >out 2>messages &
  training=$!
  until read -t 60 -r line <&4 && [[ $line == run\ * ]]; do has_ended $training && break; done
  fill
  ! is_in validation twice.$every/metrics.jsonl && break # else the evaluation was before the pipe was full
  kill -KILL $training
done
wait_until is_in validation twice.$every/metrics.jsonl
kill -TERM $training
wait_until handles_none $training 15
kill -INT $training 2>/dev/null
wait $training 2>/dev/null
holds "a second signal ends a training at once" [ $? = 130 ]
holds "without saving" [ -s twice.$every/recipe.json -a -z "$(last_checkpoint twice.$every)" ]
exec 4>&-

# systemd sends SIGHUP right after SIGTERM.
"$xtape" train "$recipe" --out hung "${small[@]}" >out 2>err &
training=$!
wait_for_steps hung 12
kill -TERM $training
kill -HUP $training 2>/dev/null
wait $training
holds "SIGHUP after SIGTERM does not keep it from saving" same "$(last_step hung)" "$(last_checkpoint hung)"

# A closed pipe does not end training, but ends commands that only print.
"$xtape" train "$recipe" --out piped "${small[@]}" --set steps=40 2>&1 | head -n 1 >out
holds "a closed pipe does not end training" [ "${PIPESTATUS[0]}" = 0 -a "$(last_checkpoint piped)" = 40 ]
"$xtape" train "$recipe" --out closed "${small[@]}" --set steps=40 >&- 2>&- <&-
holds "closed streams do not end training, and files do not take their place" [ $? = 0 -a "$(grep -c loss closed/metrics.jsonl)" = 44 ]
{ # begins when the reader has ended
  trap '' PIPE
  while echo 2>/dev/null; do sleep 0.01; done
  trap - PIPE
  exec "$xtape" ops 2>err
} | true
holds "a closed pipe ends a command that prints, without a message" [ "${PIPESTATUS[0]}" = 141 -a ! -s err ]
for _ in $(seq 60); do echo "the rain in spain"; done >words.txt # text data, which has no end token
"$xtape" train "$source/models/recipes/shakespeare_char.json" --out endless --set data.text=words.txt --set steps=2 \
  --set schedule.warmup=1 --set data.block_size=16 --set hyper.n_embd=16 --set hyper.n_layer=1 >out 2>err
"$xtape" generate endless --prompt rain --tokens 100000 2>err | head -c 1 >out
holds "a closed pipe ends generate" [ "${PIPESTATUS[0]}" = 141 -a ! -s err ]
"$xtape" ops >/dev/full 2>err
holds "a full disk is an error of the standard output" [ $? = 1 -a "$(cat err)" = "xtape: cannot write to the standard output" ]

# Only one process at a time can train a run.
"$xtape" train "$recipe" --out one "${small[@]}" >out.first 2>err.first &
training=$!
wait_for_steps one 12
expect 2 "" "^xtape: one is in use by process $training on .* since [0-9-]+ [0-9:]+: .*train .* --out one" train one --resume
expect 0 "^3\+4=" "" generate one --prompt 3+4= --tokens 4
kill -KILL $training
wait $training 2>/dev/null
holds "a killed process leaves no lock" "$xtape" train one --resume --set steps="$(($(last_checkpoint one) + 5))" >out 2>err

# Removed folders, full disks, broken checkpoints.
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
expect 2 "" "--checkpoint 30 loads it" generate piped --prompt 3+4= --tokens 4
expect 0 "^3\+4=" "" generate piped --prompt 3+4= --tokens 4 --checkpoint 30
expect 0 "^piped: step 40 " "step 40 of 40" train piped --resume --checkpoint 30
holds "the broken checkpoint is set aside" [ -d piped/checkpoints/00000040.set-aside ]
expect 2 "" "a checkpoint must be last, best, average:N, ema or the number of a step" generate piped --prompt 1 --tokens 1 --checkpoint x
finish
