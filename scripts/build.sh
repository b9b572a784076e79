#!/bin/bash
# Builds targets (everything) in a directory, which is set up first if it is new. Shows progress: a status line on a
# terminal, else a line for every tenth. usage: build.sh [DIRECTORY (build) [TARGET…]]
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-build}
[ $# -eq 0 ] || shift

bash scripts/configure.sh "$directory"
echo "building $directory" >&2
if [ -t 2 ]; then
  NINJA_STATUS='[%p, %f of %t, %e s] ' ninja -C "$directory" "$@" >&2
else
  # Not awk: Debian's waits for a whole buffer before it looks at a line.
  shown=0
  NINJA_STATUS='[%f/%t] ' ninja -C "$directory" "$@" | while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      [ $tenth -gt $shown ] || continue
      shown=$tenth
      echo "  $((10 * tenth)) % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps)"
    elif [[ $line != ninja:* ]]; then
      echo "$line"
    fi
  done >&2
fi
