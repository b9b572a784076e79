#!/bin/bash
# Little memory, small stacks, inputs without end, and absurd numbers: one error each, and no wait. Few processors: fewer
# threads.
# usage: limits.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
recipes=$source/models/recipes
for _ in $(seq 60); do echo "the rain in spain stays mainly in the plain"; done >words.txt
small=(--set data.block_size=16 --set batch.size=4 --set hyper.n_embd=32 --set hyper.n_layer=1 --set hyper.n_head=2 --set steps=2
  --set schedule.warmup=1)
text=("$recipes/shakespeare_char.json" "${small[@]}" --set data.text=words.txt)
one_error() { # one_error PATTERN: whether there is one message, which fits
  [ "$(grep -c "^xtape: " err)" = 1 ] && grep -q -E -e "^xtape: .*$1" err || { head -n 5 err; false; }
}
limited() { # limited OPTION VALUE WORD…: the program, with a limit of the shell on it
  (ulimit "$1" "$2" && exec "$xtape" "${@:3}" >out 2>err) 2>/dev/null
}

# Memory. With so much as is missing here, libraries die while they are loaded, or threads cannot start.
holds "a training trains" "$xtape" train "${text[@]}" --out run >out 2>err
ends_well() { # ends_well OPTION VALUE RUN [THREADS]: a limited training is complete, or ends with one error
  limited "$1" "$2" train "${text[@]}" --threads "${4:-2}" --out "$3"
  case $? in
    0) [ -d "$3/checkpoints/00000002" ] ;;
    1 | 2) one_error "(out of memory: |cannot start [0-9]+ threads: ).*(are left|this process can)" ;;
    127) grep -q "error while loading shared libraries" err ;; # the dynamic linker has not even enough for the program
    *) false ;;
  esac || { echo "ulimit $1 $2"; head -n 5 err; false; }
}
enough=0
for kilobytes in 40000 100000 150000 200000 250000 300000 350000 400000 450000 500000 600000 700000 900000 1600000; do
  holds "an address space of $kilobytes kB" ends_well -v $kilobytes "space$kilobytes"
  [ -d "space$kilobytes/checkpoints/00000002" ] && enough=$kilobytes
done
holds "the largest of these is enough" [ "$enough" = 1600000 ]
for kilobytes in 1000 40000 250000 300000 400000 500000 700000; do
  holds "data of $kilobytes kB" ends_well -d $kilobytes "data$kilobytes"
done
for threads in 1 64 1000; do holds "$threads threads in 600 MB" ends_well -v 600000 "threads$threads" $threads; done
limited -v 40000 --version
holds "too little for the libraries: exit code 1" [ $? = 1 ]
holds "and one error, which says what is there" one_error "out of memory: starting needs .* are left \(ulimit -v: 39.06 MiB\)"
limited -d 30000 generate run --prompt rain --tokens 2
holds "the same for data" one_error "out of memory: starting needs .* are left \(ulimit -d: 29.30 MiB\)"
# Without the environment, which the system puts on the stack, beside a random gap of up to 8 KiB: with a long one, the
# dynamic linker has not enough stack now and then, before any code of the program runs.
(ulimit -s 16 && exec -c "$xtape" --version >out 2>err)
holds "a small stack: exit code 1" [ $? = 1 ]
holds "and one error" one_error "the stack may have 16.00 KiB \(ulimit -s\), and at least .* are needed"
limited -s 256 train "${text[@]}" --out stack
holds "the smallest stack is large enough" [ $? = 0 ]

# Inputs that do not end, under a limit so that a mistake here does not take the machine's memory.
endless() { # endless WORD…: the program under a limit; its standard input is that of the caller
  limited -v 4000000 "$@"
}
for device in zero full; do
  endless train "${text[@]}" --out none --set data.text=/dev/$device
  holds "a text from /dev/$device: exit code 2" [ $? = 2 ]
  holds "and one error" one_error "cannot read /dev/$device: line 1 has [0-9]+ bytes or more, and max_line allows 16777216"
  endless train "${text[@]}" --out none --set data.text=/dev/$device --set data.max_line=0
  holds "the same without a limit: exit code 2" [ $? = 2 ]
  holds "and one error about memory" one_error "cannot read /dev/$device: out of memory: its text takes .*are left"
done
endless train "${text[@]}" --out none --set data.text=/dev/urandom
holds "a text of noise: exit code 2" [ $? = 2 ]
holds "and one error about memory, too" one_error "cannot read /dev/urandom: out of memory: its text takes .*are left"
holds "no run is left" [ ! -e none ]
for command in tokenize translate classify; do
  for device in zero full; do
    case $command in
      tokenize) trained=run ;;
      translate) trained=pairs ;;
      classify) trained=classes ;;
    esac
    [ -d $trained ] || case $command in
      translate)
        "$data_programs/number_words" numbers 50 5 >/dev/null
        "$xtape" train "$recipes/number_words.json" --set data.folder=numbers --set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2 \
          --set hyper.encoder_layers=1 --set hyper.decoder_layers=1 --set steps=1 --set schedule.warmup=1 --out pairs >out 2>err
        ;;
      classify)
        for _ in $(seq 20); do printf 'German\tein hund\nEnglish\ta dog\n'; done >labelled.tsv
        "$xtape" train "$recipes/classify_texts.json" --set data.table=labelled.tsv --set steps=1 --set batch.size=8 --out classes >out 2>err
        ;;
    esac
    endless $command $trained </dev/$device
    holds "$command of /dev/$device: exit code 2" [ $? = 2 ]
    holds "and one error that names line and option" one_error "line 1 of the standard input has [0-9]+ bytes or more, and --max-line allows 16777216"
  done
done
printf 'the rain\nin spain\n' | "$xtape" tokenize run --max-line 7 >out 2>err
holds "a line that is too long: exit code 2" [ $? = 2 ]
holds "and one error" one_error "line 1 of the standard input has 8 bytes or more, and --max-line allows 7"
printf 'rain\nthe spain\n' | "$xtape" tokenize run --max-line 7 >out 2>err
holds "lines before it are taken" [ $? = 2 -a "$(wc -l <out)" = 1 ]
holds "and it is counted" one_error "line 2 of the standard input has 9 bytes or more"
expect 0 "^[0-9]" "" tokenize run --max-line 0 <words.txt
expect 2 "" "words.txt: line 1 has 43 bytes, and max_line allows 42" train "${text[@]}" --out none --set data.max_line=42
expect 2 "" "words.txt: line 1 has 43 bytes, and max_line allows 9" generate run --prompts words.txt --tokens 1 --max-line 9
expect 2 "" "words.txt: line 1 has 43 bytes, and max_line allows 9" bleu words.txt words.txt --max-line 9

# A pipe into which nobody writes is named.
mkfifo slow.fifo
"$xtape" train "${text[@]}" --out slow --set data.text=slow.fifo >out 2>err &
training=$!
holds "a pipe without a writer is named" wait_until is_in "^reading .*slow.fifo, a pipe: nothing has come so far$" err
cat words.txt >slow.fifo
wait $training
holds "and read when one comes" [ $? = 0 ]

# Processors.
group=
has_quota() { # makes a control group that may use one processor, and names its folder `group`
  local mount
  for mount in $(awk '$(NF - 2) == "cgroup2" || $(NF - 2) == "cgroup" && $NF ~ /(^|,)cpu(,|$)/ { print $5 }' /proc/self/mountinfo); do
    mkdir "$mount/xtape-test-$$" || continue
    group=$mount/xtape-test-$$
    { [ -e "$group/cpu.max" ] && echo "100000 100000" >"$group/cpu.max"; } || echo 100000 >"$group/cpu.cfs_quota_us" &&
      (echo "$BASHPID" >"$group/cgroup.procs") && return
    rmdir "$group" && group=
  done
  false
}
trap 'rm -rf "$work"; [ -z "$group" ] || rmdir "$group"' EXIT
has_cores() { (unset OMP_NUM_THREADS && "$xtape" --version) | grep -q -E "^threads ([2-9]|[0-9]{2,}) "; }
limited_to() { # limited_to REASON COMMAND…: whether the program has one thread for this reason after the command
  (unset OMP_NUM_THREADS && "${@:2}" && exec "$xtape" --version >out 2>err)
  grep -q -x -E "threads 1 \(of [0-9]+ processors: $1\)" out || { cat out err; false; }
}
needs "two cores" has_cores
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
holds "a mask of one processor" limited_to "the affinity mask has 1" eval 'taskset -cp "$first" "$BASHPID" >taken'
needs "permission to make a control group with a quota" has_quota
holds "a quota of one processor" limited_to "the quota of the control group is 1" eval 'echo "$BASHPID" >"$group/cgroup.procs"'
needs_nothing

# Numbers.
expect 2 "" "--threads: .*4096" train "${text[@]}" --out none --threads 1000000
expect 2 "" "--threads: .*4096" run missing.json --threads 1000000
expect 2 "" "--threads: .*4096" shadow run --threads 99999999999999999999
expect 2 "" "--threads: .*4096" replay run --threads 4097
expect 2 "" "--threads: .*4096" translate run --threads -1
expect 2 "" "--threads: .*4096" profile "${text[@]:0:1}" --threads 1e9
expect 2 "" "'threads' must be a whole number from 0 to 4096" train "${text[@]}" --out none --set threads=4097
expect 0 "^several: step 1" "^warning: an update adds 5 micro-batches \(batch.accumulate\), and an epoch has [0-9]+: an update reads all data several times" \
  train "$recipes/classify_texts.json" --set data.table=labelled.tsv --set steps=1 --set batch.size=16 --set batch.accumulate=5 --out several
"$xtape" train "$recipes/classify_texts.json" --set data.table=labelled.tsv --set steps=1 --set batch.size=16 --out endless \
  --set batch.accumulate=1000000 --set batch.shards=3 >out 2>err &
training=$!
holds "a long update tells how far it is" wait_until is_in "^step 1 of 1: play [0-9]+ of 3000000$" err
kill -TERM $training
wait $training
holds "and can be interrupted" [ $? = 143 ]
expect 2 "" "'batch.accumulate' must be a whole number from 1 to 1048576, not 1000000000000" train "${text[@]}" --out none --set batch.accumulate=1000000000000
expect 2 "" "--timeout: Value 1e300 not in range" train "${text[@]}" --out none --timeout 1e300

# Time in proportion to the size: a quadratic search would take minutes.
python3 - <<'PYTHON'
import json
blocks = {f"b{i}": {"inputs": ["x"], "result": "x"} for i in range(100000)}
hyper = {f"h{i}": i for i in range(100000)}
functions = {f"f{i}": {"inputs": {"x": "float [n]"}, "result": f"b(x) + f{i // 2}(x)" if i else "x"} for i in range(100000)}
model = {"modules": {"b": {"block": "b7"}}, "functions": functions}
json.dump({"xtape": 2, "name": "many", "hyper": hyper, "blocks": blocks, "model": model}, open("many.json", "w"))
PYTHON
expect 0 "parameters" "" show many.json
finish
