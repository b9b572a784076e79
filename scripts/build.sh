#!/bin/bash
# Builds into build/ (or the directory given): release, for the processor of this machine. More words go to meson setup.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:-build}
[ $# -eq 0 ] || shift

if [ ! -f "$directory/build.ninja" ]; then
  meson setup "$directory" "$@" >"/tmp/xtape-setup.$$" || { cat "/tmp/xtape-setup.$$" >&2; rm -f "/tmp/xtape-setup.$$"; exit 1; }
  rm -f "/tmp/xtape-setup.$$"
fi
echo "building $directory" >&2
ninja -C "$directory" --quiet >&2
