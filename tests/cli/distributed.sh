#!/bin/bash
# Training, evaluating and translating on several ranks of one host.
# usage: distributed.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
source "$(dirname "$0")/ranks_frame.sh"
library=$(dirname "$xtape")/../mpi/libxtape-mpi.so
awk 'BEGIN { srand(1); for (i = 0; i < 400; ++i) { for (j = 0; j < 6; ++j) printf "%c", 97 + int(12 * rand()); print "" } }' >text.txt
"$data_programs/number_words" words 300 20 || exit 1
# More weights than a piece of the optimiser has, so that the ranks share them; 20 rows are not a multiple of 8 shards.
small=("$recipes/shakespeare_char.json" --set data.text=text.txt --set data.block_size=16 --set hyper.n_embd=48
  --set hyper.n_layer=2 --set hyper.n_head=2 --set hyper.dropout_rate=0.1 --set batch.size=20 --set batch.shards=8
  --set schedule.warmup=2 --threads 1)
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
for _ in $(seq 200); do [ -s saved/metrics.jsonl ] && break; sleep 0.05; done
kill -USR1 $training
for _ in $(seq 200); do [ -n "$(last_checkpoint saved)" ] && break; sleep 0.05; done
holds "SIGUSR1 saves a checkpoint" [ -n "$(last_checkpoint saved)" ]
sleep 0.2
holds "and the training goes on" [ "$(wc -l <saved/metrics.jsonl)" -gt "$(($(last_checkpoint saved) + 1))" ]
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
(unset XTAPE_MPI && cd "$work" && on_ranks 2 train "${small[@]}" "${ten[@]}" --out found)
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
holds "when a rank is killed, all end soon" all_end 10
holds "with an exit code" [ "$code" != 0 ]
holds "and a message" grep -q -E "rank 2 .*on (node )?$host" err
holds "the last checkpoint is whole" alone eval killed
for ranks in 2 5; do holds "$ranks ranks go on" goes_on killed $ranks "${small[@]}"; done

# What the ranks cannot do.
refused() { # refused PATTERN: whether the last command ended with one message, which fits, and left no run
  [ "$code" = 2 ] && one_message "$1" && [ ! -e none ]
}
on_ranks 3 train "${small[@]}" "${ten[@]}" --set batch.shards=2 --out none
code=$?
holds "more ranks than shards are refused" refused "3 ranks .*batch\.shards is 2"
rm -rf none
refuse() { # refuse WHAT PATTERN WORD…: two ranks of which only the second one has the words
  if [ -n "$missing" ]; then skipped=$((skipped + 1)); return; fi
  local what=$1 pattern=$2
  shift 2
  timeout -k 5 60 "${launcher[@]}" -n 1 "$xtape" train "${small[@]}" "${ten[@]}" --out "$work/none" \
    : -n 1 "$xtape" train "${small[@]}" "${ten[@]}" --out "$work/none" "$@" >out 2>err
  code=$?
  holds "a rank with another $what is refused" refused "$pattern"
  rm -rf none
}
refuse recipe "rank 0 on $host has .*\"accumulate\":1.*, rank 1 on $host has .*\"accumulate\":2" --set batch.accumulate=2
