#!/bin/bash
# Builds the library and its suites under AddressSanitizer and UBSan (ten minutes and more), and runs those that the core
# rests on. usage: sanitize.sh [SUITE…]
set -euo pipefail
cd "$(dirname "$0")/.."
suites=("$@")
[ $# -gt 0 ] || suites=(array tape grad player)
bash scripts/setup.sh
[ -f build-sanitized/build.ninja ] || meson setup build-sanitized -Dnative=false -Db_sanitize=address,undefined \
  -Db_lundef=false -Doptimization=0 >/dev/null
ninja -C build-sanitized $(printf "tests/%s_test " "${suites[@]}") --quiet >&2
list=$(IFS=,; echo "${suites[*]}")
# What OpenMP and BLAS keep for their threads is no leak of ours.
ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 python3 tests/run.py "build-sanitized:$list"
