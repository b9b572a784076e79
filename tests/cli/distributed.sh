#!/bin/bash
# Training, evaluating and translating on several ranks of one host.
# usage: distributed.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/ranks_frame.sh" "$@"
library=$(dirname "$xtape")/../mpi/libxtape-mpi.so
"$data_programs/number_words" words 300 20 || exit 1
ten=(--set steps=10 --set schedule.steps=10 --set evaluate_every=5)
five=(--set steps=5 --set schedule.steps=10 --set evaluate_every=5)

# One process.
holds "the program does not need MPI" [ "$(ldd "$xtape" | grep -c -i mpi)" = 0 ]
holds "one process trains" trains 0 alone "${small[@]}" "${ten[@]}"
holds "another seed" trains 0 seed "${small[@]}" "${ten[@]}" --seed 2
holds "gives other bits" [ -n "$(bits seed)" -a "$(bits seed)" != "$(bits alone)" ]
holds "another number of shards" trains 0 shards "${small[@]}" "${ten[@]}" --set batch.shards=5
holds "gives other bits, too" [ -n "$(bits shards)" -a "$(bits shards)" != "$(bits alone)" ]
"$xtape" train "${small[@]}" --set steps=1000000 --set evaluate_every=1000000 --out saved >out 2>err &
training=$!
wait_until test -s saved/metrics.jsonl
kill -USR1 $training
has_checkpoint() { [ -n "$(last_checkpoint "$1")" ]; } # has_checkpoint RUN
holds "SIGUSR1 saves a checkpoint" wait_until has_checkpoint saved
has_gone_on() { [ "$(wc -l <"$1/metrics.jsonl")" -gt "$(($(last_checkpoint "$1") + 1))" ]; } # has_gone_on RUN
holds "and the training goes on" wait_until has_gone_on saved
kill -TERM $training
wait $training
holds "until it ends by another signal" [ $? = 143 ]

needs "mpirun of Open MPI" launcher_of openmpi
needs "the library xtape-mpi" test -e "$library"
[ -n "$missing" ] || use_mpi openmpi "$library"

# Equal bits, in memory that ranks share and with messages only.
for ranks in 1 3 5; do
  holds "$ranks ranks train" trains $ranks "shared$ranks" "${small[@]}" "${ten[@]}"
  holds "$ranks ranks give the bits of one process" equal_runs alone "shared$ranks"
done
export XTAPE_SHARED_MEMORY=0
for ranks in 3 5; do
  holds "$ranks ranks train by messages" trains $ranks "messages$ranks" "${small[@]}" "${ten[@]}"
  holds "$ranks ranks without shared memory give the bits of one process" equal_runs alone "messages$ranks"
done
unset XTAPE_SHARED_MEMORY
[ -n "$missing" ] || (unset XTAPE_MPI && trains 2 found "${small[@]}" "${ten[@]}")
holds "the program finds its library" equal_runs alone found

# Resuming on another number of ranks.
holds "3 ranks train the first half" trains 3 half "${small[@]}" "${five[@]}"
for ranks in 1 5; do
  rm -rf resumed && cp -r half resumed 2>/dev/null
  holds "$ranks ranks resume what 3 ranks began" on_ranks $ranks train resumed --resume "${ten[@]}"
  holds "$ranks ranks resume to the same bits" equal_runs alone resumed
done

# A rank that is killed.
if [ -z "$missing" ]; then start_ranks 3 killed "${small[@]}" && kill -KILL "$(process_of 2)"; fi
holds "when a rank is killed, all end" all_end 300
holds "with an exit code" [ "$code" != 0 ]
holds "and tell which rank and where" tells_death 2 "$host"
holds "the last checkpoint is whole" alone eval killed
for ranks in 2 5; do holds "$ranks ranks go on" goes_on killed $ranks "${small[@]}"; done

# A rank that is stopped: before it has begun, when it has made the run, and while it trains.
stops() { # stops WHEN: the last of three ranks that are started; all of them end with one message
  holds "$1, all ranks end" all_end 300
  holds "$1: an exit code" [ "$code" != 0 ]
  holds "$1: one message that names the time" one_message "(rank [0-9]+ on $host|some rank) has not answered for 3 s"
}
start_stopping() { # start_stopping RUN: three ranks
  RANKS_OF=$work "${launcher[@]}" -n 3 "$xtape" train "${endless[@]}" "${small[@]}" --timeout 3 --out "$1" >out 2>err &
  launched=$!
}
if [ -z "$missing" ]; then
  RANKS_OF=$work "${launcher[@]}" -n 1 bash -c 'kill -STOP $$; exec "$@"' - "$xtape" train "${small[@]}" --timeout 3 --out stopped \
    : -n 2 "$xtape" train "${small[@]}" --timeout 3 --out stopped >out 2>err &
  launched=$!
fi
stops "a rank stopped before it starts"
if [ -z "$missing" ]; then
  start_stopping made
  wait_until test -e made.writing -o -e made
  kill -STOP "$(process_of 0)"
fi
stops "rank 0 stopped before its first update"
if [ -z "$missing" ]; then
  start_stopping begun
  wait_until has_lines begun/metrics.jsonl 5
  kill -STOP "$(process_of 0)"
fi
stops "rank 0 stopped while it trains"

# What the ranks cannot do. A wrong input leaves no run, as in one process.
refused() { # refused WHAT PATTERN: the last command ended with one message, which fits, and left no run
  code=$?
  holds "$1: exit code 2" [ "$code" = 2 ]
  holds "$1: one message" one_message "$2"
  holds "$1: no run is left" [ ! -e none ]
  rm -rf none
}
[ -n "$missing" ] || on_ranks 3 train "${small[@]}" "${ten[@]}" --set batch.shards=2 --out none
refused "more ranks than shards" "3 ranks .*batch\.shards is 2"
refuse() { # refuse WHAT PATTERN FOLDER WORD…: two ranks, of which the second one is in the folder and has the words
  local words=("${small[@]}" "${ten[@]}" --set data.text=/proc/self/cwd/text.txt --out "$work/none")
  [ -n "$missing" ] || timeout -k 5 600 "${launcher[@]}" --wdir "$work" -n 1 "$xtape" train "${words[@]}" \
    : --wdir "$3" -n 1 "$xtape" train "${words[@]}" "${@:4}" >out 2>err
  refused "another $1 on a rank" "$2"
}
mkdir other && tr a b <text.txt >other/text.txt
refuse recipe "recipe: rank 0 on $host has .*\"size\":20.*, rank 1 on $host has .*\"size\":21" "$work" --set batch.size=21
refuse data "data: rank 0 on $host has checksum [0-9]+, rank 1 on $host has checksum [0-9]+" "$work/other"

# Evaluating and translating.
pairs=("$recipes/number_words.json" --set data.folder=words --set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2
  --set hyper.encoder_layers=1 --set hyper.decoder_layers=1 --set batch.size=12 --set batch.shards=8 --set search.max_length=12
  --set schedule.warmup=1 --threads 1)
holds "one process trains on pairs" trains 0 pairs "${pairs[@]}" "${ten[@]}"
holds "3 ranks train on pairs" trains 3 pairs3 "${pairs[@]}" "${ten[@]}"
holds "3 ranks measure what one process measures" equal_runs pairs pairs3
alone eval pairs && mv out measures
holds "3 ranks evaluate" on_ranks 3 eval pairs
holds "and print once what one process prints" cmp measures out
cut -f1 words/validation.tsv >sentences
"$xtape" translate pairs <sentences >translations 2>err
holds "3 ranks translate" on_ranks 3 translate pairs <sentences
holds "and print once what one process prints, too" cmp translations out
needs_nothing
finish
