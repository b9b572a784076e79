# Functions for tests that start the program on several ranks. Source this file instead of frame.sh, with the same arguments.
source "$(dirname "${BASH_SOURCE[0]}")/frame.sh" "$@"
exec </dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers often run tests as root
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none # there are more ranks than processors
# Killed launchers and ranks leave files.
mkdir tmp && export TMPDIR=$work/tmp
shm=$(mktemp -d /dev/shm/xtape.XXXXXX 2>/dev/null) || shm=$TMPDIR
export OMPI_MCA_btl_vader_backing_directory=$shm OMPI_MCA_osc_sm_backing_directory=$shm
recipes=$source/models/recipes
host=$(uname -n)
launcher=() # the words before -n COUNT
launched=   # the launcher that start_ranks has started
code=       # its exit code

# A text, and a recipe for it. There are more weights than a piece of the optimiser has, so that the ranks share them; 20
# rows are not a multiple of 8 shards.
awk 'BEGIN {
  srand(1)
  for (i = 0; i < 2800; ++i) printf "%c", i % 7 == 6 ? 10 : 97 + int(12 * rand())
}' >text.txt
small=("$recipes/shakespeare_char.json" --set data.text=text.txt --set data.block_size=16 --set hyper.n_embd=48
  --set hyper.n_layer=2 --set hyper.n_head=2 --set hyper.dropout_rate=0.1 --set batch.size=20 --set batch.shards=8
  --set schedule.warmup=2 --threads 1)

launcher_of() { # launcher_of openmpi|mpich: prints the name of its mpirun
  local each mark=HYDRA
  [ "$1" = mpich ] || mark="Open MPI"
  for each in "mpirun.$1" mpirun; do
    case $("$each" --version 2>/dev/null) in *"$mark"*) echo "$each" && return ;; esac
  done
  return 1
}
use_mpi() { # use_mpi openmpi|mpich LIBRARY
  launcher=("$(launcher_of "$1")")
  XTAPE_MPI=$(realpath -m "$2") && export XTAPE_MPI
}
on_ranks() { # on_ranks COUNT WORD…: runs the program with these words; its streams go to out and err
  RANKS_OF=$work timeout -k 5 "${limit:-600}" "${launcher[@]}" -n "$1" "$xtape" "${@:2}" >out 2>err
}
alone() { "$xtape" "$@" >out 2>err; }
trains() { # trains COUNT RUN WORD…: a new run, on COUNT ranks or, with 0, without a launcher
  if [ "$1" = 0 ]; then alone train "${@:3}" --out "$2"; else on_ranks "$1" train "${@:3}" --out "$2"; fi ||
    { head -n 20 err && false; }
}

last_checkpoint() { ls "$1/checkpoints" 2>/dev/null | grep -x '[0-9]*' | tail -1 | sed 's/^0*//'; }
last_folder() { printf '%s/checkpoints/%08d' "$1" "$(last_checkpoint "$1")"; }
bits() { # bits RUN: prints a hash of the last weights, moments and carried states, and nothing if there are none
  local folder
  folder=$(last_folder "$1")
  [ -s "$folder/weights.safetensors" ] && [ -s "$folder/optimizer.safetensors" ] &&
    cat "$folder"/*.safetensors | sha256sum | cut -c1-12
}
metrics() { sed 's/,"tokens_per_s":.*/}/' "$1/metrics.jsonl"; } # without times
updates() { grep '"update"' "$1/ledger.jsonl" | sed 's/,"seal".*//'; } # in the ledger
equal_runs() { # equal_runs RUN RUN: at the end
  same "$(bits "$1")" "$(bits "$2")" && same "$(metrics "$1")" "$(metrics "$2")" &&
    same "$(updates "$1")" "$(updates "$2")" &&
    cmp "$(last_folder "$1")/state.json" "$(last_folder "$2")/state.json"
}

# Trainings that something ends. A variable in their environment marks all processes, also those on other hosts.
endless=(--set steps=1000000 --set evaluate_every=1000000 --set checkpoint_every=10)
start_ranks() { # start_ranks COUNT RUN WORD…: begins an endless training, and lets it make 25 updates
  RANKS_OF=$work "${launcher[@]}" -n "$1" "$xtape" train "${endless[@]}" "${@:3}" --out "$2" >out 2>err &
  launched=$!
  wait_until has_lines "$2/metrics.jsonl" 25
}
has_lines() { [ "$(wc -l 2>/dev/null <"$1")" -ge "$2" ] 2>/dev/null; } # has_lines FILE COUNT
processes() { grep -l -s -z -F -x "RANKS_OF=$work" /proc/[0-9]*/environ | cut -d/ -f3; }
process_of() { # process_of RANK
  local each
  for each in $(processes); do
    grep -q -s -z -E -x "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" "/proc/$each/environ" && echo "$each"
  done
}
kill_all() { # shellcheck disable=SC2046
  [ -z "$(processes)" ] || kill -KILL $(processes) 2>/dev/null
}
all_end() { # all_end SECONDS: whether the launcher and all ranks end in this time; sets `code`
  local left
  { # without what the shell says about killed jobs
    for _ in $(seq "$((10 * $1))"); do
      left=$(processes; ! kill -0 "$launched" || echo "$launched") # the launcher has no such variable until it begins
      [ -n "$left" ] || break
      sleep 0.1
    done
    kill_all
    wait "$launched"
    code=$?
  } 2>/dev/null
  [ -z "$left" ]
}
one_message() { # one_message PATTERN: whether the ranks have printed one message, which fits
  [ "$(grep -a -c "^xtape: " err)" = 1 ] && grep -a -q -E -e "^xtape: .*$1" err || { grep -a "^xtape: " err || head -n 20 err; false; }
}
tells_death() { # tells_death RANK HOST: whether a rank tells once that this one has died, or the launcher does
  [ "$(grep -a -c "^xtape: " err)" -le 1 ] &&
    grep -a -q -E "rank $1 on $2 has died|rank $1 .* on node $2 exited on signal 9|PID [0-9]+ RUNNING AT $2" out err ||
    { cat out err | grep -a -E "^xtape: |^=  |rank|error" | head; false; }
}
# goes_on RUN COUNT WORD…: whether a copy of an ended training, of which WORD… is the recipe, goes on from its last
# checkpoint on COUNT ranks to the bits of one that nothing has ended
goes_on() {
  local steps=$(($(last_checkpoint "$1") + 3)) whole
  local until=(--set steps=$steps --set schedule.steps=1000000 --set evaluate_every=1000000)
  whole=whole.$steps.$(echo "${@:3}" | cksum | cut -d' ' -f1)
  [ -d "$whole" ] || trains 0 "$whole" "${@:3}" "${until[@]}" || return
  rm -rf again && cp -r "$1" again && on_ranks "$2" train again --resume "${until[@]}" || { head err && return 1; }
  [ "$(last_checkpoint again)" = $steps ] && same "$(bits again)" "$(bits "$whole")"
}
leave_nothing() {
  kill_all
  rm -rf "$shm"
}
trap 'leave_nothing; rm -rf "$work"' EXIT
