# Functions that the tests of the program share. Source this file with the program and the source tree as arguments. It
# changes to a new empty directory.
set -uo pipefail
xtape=$(realpath "$1")
source=$2
data_programs=$(dirname "$xtape")/../../examples/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0
skipped=0
missing=

expect() { # expect EXIT_CODE STDOUT_PATTERN STDERR_PATTERN WORD…: an empty pattern asks for an empty stream
  if [ -n "$missing" ]; then skipped=$((skipped + 1)); return; fi
  local code=$1 out=$2 err=$3 got
  shift 3
  "$xtape" "$@" >out 2>err
  got=$?
  if [ "$got" = "$code" ] && stream_fits "$out" out && stream_fits "$err" err; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: xtape $* (exit code $got, wanted $code)"
    head -n 5 out err
  fi
}
stream_fits() {
  if [ -z "$1" ]; then [ ! -s "$2" ]; else grep -q -E -e "$1" "$2"; fi
}
holds() { # holds NAME COMMAND…
  if [ -n "$missing" ]; then skipped=$((skipped + 1)); return; fi
  local name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}
wait_until() { # wait_until COMMAND…: waits until the command succeeds; gives up after minutes, which only a failure takes
  local tries=0
  until "$@"; do
    [ $((tries += 1)) -le 6000 ] || return 1
    sleep 0.05
  done
}
is_in() { grep -q -E -e "$1" "$2" 2>/dev/null; } # is_in PATTERN FILE
has_ended() { ! kill -0 "$1" 2>/dev/null; }      # has_ended PROCESS
handles() { # handles PROCESS NUMBER: whether it has a handler of this signal, and is no longer this shell's copy
  local caught
  [ -e "/proc/$1/exe" ] && [ ! "/proc/$1/exe" -ef "/proc/$$/exe" ] || return 1
  caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
  [ -n "$caught" ] && [ $((0x$caught >> ($2 - 1) & 1)) = 1 ]
}
handles_none() { ! handles "$@"; } # handles_none PROCESS NUMBER
same() { [ -n "$1" ] && [ "$1" = "$2" ]; } # same TEXT TEXT: two that fail alike say nothing
needs() { # needs WHAT COMMAND…: unless the command succeeds, all expectations are skipped up to `needs_nothing`
  "${@:2}" >/dev/null 2>&1 && return
  missing=$1
  echo "SKIPPED: $(basename "$0"): it needs $1"
}
needs_nothing() { missing=; }
instruction_sets() { # those of this architecture, from the narrowest
  case $("$xtape" --version) in
    *neon* | *dotprod* | *i8mm*) echo neon dotprod i8mm ;;
    *) echo baseline avx2 avx512 avx512_bf16 amx ;;
  esac
}
finish() {
  echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
  [ "$failed" = 0 ]
}
