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
  NINJA_STATUS='[%f/%t] ' ninja -C "$directory" "$@" | awk '
    !match($0, /^\[[0-9]+\/[0-9]+\] /) { if (!/^ninja: /) print; next }
    { split(substr($0, 2, RLENGTH - 3), steps, "/")
      tenth = int(10 * steps[1] / steps[2])
      if (tenth > shown) { print "  " 10 * tenth " % (" steps[1] " of " steps[2] " steps)"; fflush(); shown = tenth } }' >&2
fi
