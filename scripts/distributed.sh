#!/bin/bash
# Long tests of training on several ranks, with Open MPI and MPICH: equal bits, failures, and several hosts, which are
# network namespaces of this machine. Installs packages and builds first. The last line is "N passed, N failed", with
# ", N skipped" if this machine lacks something that a case needs. The exit code is 1 if anything failed.
# usage: [UPDATES=20] distributed.sh
set -uo pipefail
cd "$(dirname "$0")/.."
updates=${UPDATES:-20}

give_up() {
  echo "$1" >&2
  echo "0 passed, 1 failed"
  exit 1
}
bash scripts/setup.sh openmpi-bin libopenmpi-dev mpich libmpich-dev iproute2 || give_up "the setup failed"
bash scripts/build.sh build || give_up "the build failed"
bash scripts/configure.sh build-mpich -Dtests=false -Dmpi_library=mpich &&
  ninja -C build-mpich --quiet src/mpi/libxtape-mpi.so >&2 || give_up "the build with MPICH failed"

root=$PWD
source tests/cli/ranks_frame.sh build/src/cli/xtape "$root"
trap 'leave_nothing; remove_hosts; [ ! -d disk ] || umount -q disk; rm -rf "$work"' EXIT
limit=900 # of one training; 200 updates by 16 threads on 2 processors take minutes
"$data_programs/number_words" words 2000 50 && "$data_programs/dates" dates 2000 50 || exit 1
use() { # use openmpi|mpich
  if [ "$1" = openmpi ]; then use_mpi openmpi "$root/build/src/mpi/libxtape-mpi.so"; else
    use_mpi mpich "$root/build-mpich/src/mpi/libxtape-mpi.so"
  fi
}

# Four families, all with dropout. GPT has two buckets of gradients, the batches of the second family cannot be divided
# by 8, GRUs run in a scan, and the states of LSTMs pass through micro-batches and windows.
families=(gpt transformer gru lstm)
words_of() { # words_of FAMILY: sets `words`, the recipe
  words=(--set steps="$updates" --set evaluate_every=$((updates / 2)) --set batch.shards=8 --set schedule.warmup=2)
  case $1 in
    gpt) words+=("$recipes/shakespeare_char.json" --set data.text=text.txt --set hyper.dropout_rate=0.1
      --set hyper.n_embd=192 --set data.block_size=32 --set batch.size=16) ;;
    transformer) words+=("$recipes/number_words.json" --set data.folder=words --set hyper.dropout_rate=0.1
      --set batch.size=20) ;;
    gru) words+=("$recipes/dates_gru.json" --set data.folder=dates --set hyper.dropout_rate=0.1 --set batch.size=16
      --set hyper.units=64) ;;
    lstm) words+=("$recipes/shakespeare_lstm.json" --set data.text=text.txt --set hyper.dropout_rate=0.1 --set hyper.width=96
      --set data.block_size=16 --set batch.size=16 --set batch.accumulate=2) ;;
  esac
}
row() { printf '%-12s %-8s %-14s %5s %7s  %s\n' "$@"; }
compared() { # compared FAMILY MPI HOSTS RANKS THREADS: trains, compares with one process and prints a row
  local run=compared
  holds "$1, $2, $3, $4 ranks, $5 threads: it trains" trains "$4" "$run" "${words[@]}" --threads "$5"
  holds "$1, $2, $3, $4 ranks, $5 threads: the bits of one process" equal_runs "$1" "$run"
  [ -n "$missing" ] || row "$1" "$2" "$3" "${4/#0/-}" "$5" "$(bits "$run")"
  rm -rf "$run"
}

echo "$updates updates; the hashes are those of weights and moments"
row family MPI hosts ranks threads bits
for name in "${families[@]}"; do
  words_of "$name"
  holds "$name: one process trains" trains 0 "$name" "${words[@]}" --threads 1
  row "$name" - "this one" - 1 "$(bits "$name")"
  holds "$name: another seed trains" trains 0 "$name.seed" "${words[@]}" --threads 1 --seed 7
  holds "$name: another seed gives other bits" [ -n "$(bits "$name.seed")" -a "$(bits "$name.seed")" != "$(bits "$name")" ]
  compared "$name" - "this one" 0 2
  for mpi in openmpi mpich; do
    use $mpi
    for ranks in 1 2 3 4 5 8; do for threads in 1 2; do compared "$name" $mpi "this one" $ranks $threads; done; done
    XTAPE_SHARED_MEMORY=0 compared "$name" $mpi "no memory" 3 1
  done
done

# Failures. Each ends all processes soon, with one message, and leaves a checkpoint from which any number of ranks goes on.
ended() { # ended WHAT SECONDS COUNT MESSAGE…: `start_ranks … $run …` has begun, and something has failed. MESSAGE… is a command.
  holds "$1: all processes end soon" all_end "$2"
  holds "$1: the exit code is not 0" [ "$code" != 0 ]
  holds "$1: the message" "${@:4}"
  holds "$1: the last checkpoint is whole" alone eval "$run"
  holds "$1: $3 ranks go on" goes_on "$run" "$3" "${small[@]}"
}
one_at_most() { [ "$(grep -a -c "^xtape: " err)" -le 1 ]; }
mounts_disk() { mkdir -p disk && mount -t tmpfs -o size=2500k tmpfs disk; }
checkpoints_of() { ls "$1/checkpoints" 2>/dev/null | grep -c -x '[0-9]*'; }
gets_checkpoint() { # gets_checkpoint RUN: within 5 s
  for _ in $(seq 100); do
    [ "$(checkpoints_of "$1")" -gt 0 ] && return
    sleep 0.05
  done
  return 1
}
for mpi in openmpi mpich; do
  use $mpi
  for rank in 0 2; do
    run=$mpi.kill$rank
    holds "$run begins" start_ranks 3 "$run" "${small[@]}"
    kill -KILL "$(process_of $rank)"
    ended "$run" 10 5 tells_death $rank "$host"
  done

  run=$mpi.killall
  holds "$run begins" start_ranks 4 "$run" "${small[@]}"
  kill_all
  ended "$run" 10 1 one_at_most
  for ranks in 3 8; do holds "$run: $ranks ranks go on" goes_on "$run" $ranks "${small[@]}"; done

  for rank in 0 1; do
    run=$mpi.stop$rank
    holds "$run begins" start_ranks 3 "$run" "${small[@]}" --timeout 3
    kill -STOP "$(process_of $rank)"
    ended "$run" 13 2 one_message "rank [0-2] on $host: rank $rank on $host has not answered for 3 s"
  done

  run=$mpi.usr1
  holds "$run begins" start_ranks 3 "$run" "${small[@]}" --set checkpoint_every=1000000
  holds "$run: there is no checkpoint before SIGUSR1" [ "$(checkpoints_of "$run")" = 0 ]
  kill -USR1 "$launched"
  holds "$run: SIGUSR1 saves one" gets_checkpoint "$run"
  holds "$run: the training goes on" kill -0 "$launched"
  kill -TERM "$launched"
  ended "$run, then SIGTERM" 10 5 one_at_most

  run=$mpi.loss
  since=$SECONDS
  on_ranks 3 train "${small[@]}" "${endless[@]}" --set 'schedule={"kind": "constant", "rate": 3e38}' --set clip=0 \
    --set optimizer.weight_decay=0 --set checkpoint_every=1 --out "$run"
  holds "$run: exit code 1" [ $? = 1 ]
  holds "$run: soon" [ $((SECONDS - since)) -le 10 ]
  holds "$run: one message with op, line, rank and host" one_message "not finite: .*line [0-9]+.* rank [0-2] on $host"
  holds "$run: no process is left" [ -z "$(processes)" ]
  holds "$run: the last checkpoint is whole" alone eval "$run"

  needs "the right to mount a file system" mounts_disk
  run=disk/run
  holds "$mpi, a full disk" eval "! on_ranks 3 train $(printf '%q ' "${small[@]}" "${endless[@]}") --out $run"
  holds "$mpi, a full disk: one message with rank and host" one_message "rank 0 on $host: .*No space left on device"
  holds "$mpi, a full disk: no process is left" [ -z "$(processes)" ]
  holds "$mpi, a full disk: the last checkpoint is whole" alone eval $run
  holds "$mpi, a full disk: 2 ranks go on elsewhere" goes_on $run 2 "${small[@]}"
  [ -n "$missing" ] || umount disk
  needs_nothing
done

# Several hosts: network namespaces, which a bridge connects. A command "on a host" also has its own name of the host.
net=xt$$
hosts=("${net}a" "${net}b" "${net}c" "${net}d")
add_hosts() {
  local i name
  ip link add "$net" type bridge && ip link set "$net" up || return
  for i in 0 1 2 3; do
    name=${hosts[i]}
    ip netns add "$name" && ip link add "$name" type veth peer name eth0 netns "$name" &&
      ip link set "$name" master "$net" up && ip -n "$name" link set lo up && ip -n "$name" link set eth0 up &&
      ip -n "$name" address add "10.213.77.$((i + 1))/24" dev eth0 || return
  done
}
remove_hosts() {
  local name
  for name in ${hosts[@]+"${hosts[@]}"} ${net+"$net"}; do
    ip link del "$name" # the bridge and the wires; a namespace alone would outlive the script for a moment
    ip netns del "$name"
  done 2>/dev/null
}
limit_all() { # limit_all WORD…: adds a queueing discipline to each host's end of its wire
  local name
  for name in "${hosts[@]}"; do ip netns exec "$name" tc qdisc add dev eth0 "$@" || return; done
}
sent_by() { ip netns exec "$1" cat /sys/class/net/eth0/statistics/tx_bytes; }
takes_wire() { # takes_wire BEFORE BYTES: whether the second host has sent so many more
  [ $(($(sent_by "${hosts[1]}") - $1)) -gt "$2" ]
}
# The launchers call this instead of ssh, with options, a host and the words of a command. It must not be a function.
cat >agent <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
exec ip netns exec "$1" unshare --uts bash -c "echo $1 >/proc/sys/kernel/hostname; ${*:2}"
END
chmod +x agent
use_on() { # use_on openmpi|mpich HOSTS: the launcher itself runs on the first of the hosts
  use "$1"
  local enter=(ip netns exec "${hosts[0]}" unshare --uts bash -c 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"' "${hosts[0]}")
  if [ "$1" = openmpi ]; then
    launcher=("${enter[@]}" "${launcher[@]}" --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1
      --map-by node --host "$2")
  else
    launcher=("${enter[@]}" "${launcher[@]}" -iface eth0 -launcher ssh -launcher-exec "$work/agent" -hosts "$2")
  fi
}
needs "the right to add network namespaces" add_hosts
[ -z "$missing" ] || remove_hosts
four=${hosts[0]},${hosts[1]},${hosts[2]},${hosts[3]}
wire_is() { # wire_is open|slow|late
  case $1 in
    open) true ;;
    slow) limit_all root handle 1: tbf rate 400mbit burst 256kb latency 50ms ;;
    late) limit_all parent 1:1 handle 10: netem delay 1ms ;;
  esac
}
# MPICH starts its ranks and exchanges addresses over the wire. Its UCX knows that the namespaces are parts of one machine,
# and copies messages from process to process. With UCX_TLS=self,tcp, programs often hang in MPI_Finalize of MPICH 4.0,
# even those of ten lines. So the slow wires are for Open MPI, which uses TCP between hosts of different names.
for wire in open slow late; do
  [ -n "$missing" ] || needs "tc and the kernel's $([ $wire = late ] && echo netem || echo tbf)" wire_is $wire
  for name in "${families[@]}"; do
    words_of "$name"
    weights=$(stat -c %s "$(last_folder "$name")/weights.safetensors")
    for mpi in openmpi $([ $wire != open ] || echo mpich); do
      # Whatever finds out that the namespaces share one machine, could share its memory.
      export XTAPE_SHARED_MEMORY=0
      use_on "$mpi" "$four"
      before=$([ -n "$missing" ] || sent_by "${hosts[1]}")
      compared "$name" "$mpi" "4, $wire" 4 1
      # A rank of 4 owns a quarter of the weights, which it sends to 3 hosts after each update.
      [ "$mpi" = mpich ] ||
        holds "$name, 4 hosts, $wire: messages take the wire" takes_wire "$before" $((updates * weights * 3 / 4))
      unset XTAPE_SHARED_MEMORY
      # Here the two ranks of a name share memory, and send messages to the others.
      use_on "$mpi" "${hosts[0]}:2,${hosts[1]}:2"
      compared "$name" "$mpi" "2 x 2, $wire" 4 1
    done
  done
done

# Failures of other hosts.
needs_nothing
needs "the right to add network namespaces" test -e "/run/netns/${hosts[3]}"
for mpi in openmpi mpich; do
  use_on $mpi "${hosts[0]},${hosts[1]},${hosts[2]}"
  if [ $mpi = openmpi ]; then # UCX of MPICH ends rank 0 when it cannot read the memory of a dead process
    run=$mpi.far
    holds "$run begins" start_ranks 3 "$run" "${small[@]}"
    [ -n "$missing" ] || kill -KILL "$(process_of 1)"
    ended "$run" 10 2 tells_death 1 "${hosts[1]}"
  fi
  # A stopped rank of another host looks like a host that the network has lost, but the launcher can still end it.
  run=$mpi.farstop
  holds "$run begins" start_ranks 3 "$run" "${small[@]}" --timeout 3
  [ -n "$missing" ] || kill -STOP "$(process_of 2)"
  ended "$run" 13 2 one_message "rank [01] on ${net}[ab]: rank 2 on ${hosts[2]} has not answered for 3 s"
done
needs_nothing
finish
