#!/bin/bash
# Builds targets (everything) in a directory, which is set up first if it is new. Shows progress and the time that is
# left, which it estimates from the steps that are done, weighted by the bytes of source that a step compiles. On a
# terminal it shows a status line, else a line for every tenth. usage: build.sh [DIRECTORY (build) [TARGET…]]
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-build}
[ $# -eq 0 ] || shift

bash scripts/configure.sh "$directory"
echo "building $directory" >&2

alone=20000  # the bytes of a source that is a unit of its own
bytes_of() { # bytes_of STEP, in ninja's words
  local unit=${1##* }
  unit=$directory/${unit%/*}/${unit##*/meson-generated_}
  unit=${unit%.o}
  if [[ $1 != Compiling* ]]; then
    echo 0
  elif [ -f "$unit" ]; then  # a file that includes the sources of its unit
    sed -n 's/^#include<\(.*\)>$/\1/p' "$unit" | xargs -r cat | wc -c
  else
    echo $alone
  fi
}

declare -A bytes
all=1
while read -r _ step; do
  bytes[$step]=$(bytes_of "$step")
  all=$((all + bytes[$step]))
done < <(NINJA_STATUS='[%f/%t] ' ninja -C "$directory" -n "$@" | grep '^\[')

# Not awk: Debian's waits for a whole buffer before it looks at a line.
finished=0 shown=0 begin=$SECONDS
NINJA_STATUS='[%f/%t] ' ninja -C "$directory" "$@" | while IFS= read -r line; do
  if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]]; then
    steps="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
    finished=$((finished + ${bytes[${BASH_REMATCH[3]}]:-0}))
    percent=$((100 * finished / all))
    [ $percent -gt 0 ] || continue
    left=$(((SECONDS - begin) * (all - finished) / finished))
    text=$(printf '%d %% (%s, %d:%02d left)' $percent "$steps" $((left / 60)) $((left % 60)))
    if [ -t 2 ]; then
      printf '\r  %s\033[K' "$text"
    elif [ $((percent / 10)) -gt $shown ]; then
      shown=$((percent / 10))
      echo "  $text"
    fi
  elif [[ $line != ninja:* ]]; then
    [ ! -t 2 ] || printf '\r\033[K'
    echo "$line"
  fi
done >&2
[ ! -t 2 ] || printf '\r\033[K' >&2
