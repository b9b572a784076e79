#!/bin/bash
# Builds into build/ (or the directory given): release, for the processor of this machine. More words go to meson setup.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-build}
[ $# -eq 0 ] || shift

bash scripts/configure.sh "$directory" "$@"
echo "building $directory" >&2
ninja -C "$directory" --quiet >&2
