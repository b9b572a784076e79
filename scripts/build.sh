#!/bin/bash
# Makes a release build for the processor of this machine. usage: build.sh [DIRECTORY (build) [OPTION…]]
# The options are passed to `meson setup`.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-build}
[ $# -eq 0 ] || shift

bash scripts/configure.sh "$directory" "$@"
echo "building $directory" >&2
ninja -C "$directory" --quiet >&2
