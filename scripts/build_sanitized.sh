#!/bin/bash
# Builds targets with clang++ and sanitizers into build-address/ or build-thread/. Used by sanitize.sh and fuzz.sh.
# usage: build_sanitized.sh address|thread TARGET…   JOBS sets the number of parallel compilers
set -euo pipefail
cd "$(dirname "$0")/.."
kind=$1
shift
build=build-$kind
bash scripts/setup.sh clang libclang-rt-14-dev

# Without optimisation the kernels would run for hours.
options=(-Db_lundef=false -Doptimization=1 -Dnative=true)
if [ "$kind" = address ]; then options+=(-Db_sanitize=address,undefined); else options+=(-Db_sanitize=thread); fi
cache=$(command -v ccache || true)
CC="$cache clang" CXX="$cache clang++" bash scripts/configure.sh "$build" "${options[@]}"
echo "building $build" >&2
ninja -C "$build" --quiet ${JOBS:+-j "$JOBS"} "$@" >&2
