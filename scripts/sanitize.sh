#!/bin/bash
# Builds everything under sanitizers, by clang++, and runs the suites named, or all; a report fails the suite.
# usage: sanitize.sh [address|thread] [SUITE…]
#   address (the default)  AddressSanitizer, its leak detection, and UBSan, in build-address/
#   thread                 ThreadSanitizer, in build-thread/
# JOBS (all processors) says how many compilers run at once, PATIENCE (10) how much longer than usual a suite may take.
set -euo pipefail
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
kind=address
case "${1:-}" in address | thread) kind=$1; shift ;; esac
build=build-$kind
bash scripts/build_sanitized.sh "$kind" src/cli/xtape

# A suite is a program of its own, or a script about the program xtape. Five have no meaning here: "install" and "docs" build outside
# programs, which know nothing of sanitizers, against the library; "faults" defines calls of the C library itself, as the
# sanitizers do; "layers" and "mutants" read sources.
if [ $# -gt 0 ]; then
  suites=("$@")
else
  mapfile -t suites < <(meson introspect --tests "$build" | python3 -c '
import json, sys
print(*(test["name"] for test in json.load(sys.stdin) if test["name"] not in ("docs", "faults", "install", "layers", "mutants")), sep="\n")')
fi
targets=()
for suite in "${suites[@]}"; do
  if [ -f "tests/cli/$suite.sh" ] || [ "$suite" = cli ]; then targets+=(src/cli/xtape); else targets+=("tests/${suite}_test"); fi
done
bash scripts/build_sanitized.sh "$kind" "${targets[@]}"

# OpenBLAS stays on the thread that calls it: its own threads are not instrumented, and nothing of ours counts on them.
export OPENBLAS_NUM_THREADS=1
# Reports go to files: no test can swallow them, and where one stops nothing the rest is still seen.
reports=$PWD/$build/reports
rm -rf "$reports"
mkdir "$reports"
common=log_path=$reports/report:exitcode=99
if [ "$kind" = address ]; then
  export ASAN_OPTIONS=$common:detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
  export UBSAN_OPTIONS=$common:halt_on_error=0:print_stacktrace=1
else
  # The OpenMP library is not instrumented. Archer, which comes with it, tells ThreadSanitizer what its regions order.
  libraries=$(dirname "$(readlink -f "$(command -v clang++)")")/../lib
  export OMP_TOOL_LIBRARIES=$libraries/libarcher.so
  export TSAN_OPTIONS=$common:ignore_noninstrumented_modules=1
fi
code=0
python3 tests/run.py --patience "${PATIENCE:-10}" "$build:$(IFS=,; echo "${suites[*]}")" || code=1
found=$(find "$reports" -type f | wc -l)
if [ "$found" -gt 0 ]; then
  find "$reports" -type f -exec cat {} +
  code=1
fi
echo "$found reports"
exit $code
