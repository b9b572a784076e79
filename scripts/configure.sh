#!/bin/bash
# Runs `meson setup` if the directory is not set up yet. Prints nothing unless it fails. usage: configure.sh DIRECTORY
# [OPTION…]
set -euo pipefail
cd "$(dirname "$0")/.."
[ ! -f "$1/build.ninja" ] || exit 0
output=$(meson setup "$@" 2>&1) || { echo "$output" >&2; exit 1; }
