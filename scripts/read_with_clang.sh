#!/bin/bash
# Clang's front end reads every source file, with warnings as errors. Nothing is compiled, so this takes three minutes
# on two cores; a second time, only what depends on changed files is read again. The suite "clang".
# usage: read_with_clang.sh   JOBS sets the number of parallel compilers
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang++ >/dev/null; then
  echo "SKIPPED: clang++ is not installed: bash scripts/setup.sh clang"
  echo "0 passed, 0 failed, 1 skipped"
  exit
fi
directory=build-clang-reads
CC=clang CXX=$PWD/scripts/clang_reader.sh bash scripts/configure.sh $directory
ninja -C $directory --quiet build.ninja >&2
mapfile -t units < <(ninja -C $directory -t targets rule cpp_COMPILER)
code=0
output=$(ninja -C $directory ${JOBS:+-j "$JOBS"} -k 0 "${units[@]}" 2>&1) || code=1
grep -v '^\[\|^ninja: ' <<<"$output" || true
failed=$(grep -c '^FAILED: ' <<<"$output") || failed=$code
echo "$((${#units[@]} - failed)) passed, $failed failed"
exit $code
