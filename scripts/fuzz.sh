#!/bin/bash
# Fuzzes all code that reads files and texts with libFuzzer, under AddressSanitizer and UBSan.
# usage: fuzz.sh [MINUTES] [TARGET…]
#   MINUTES (10)  the total time; JOBS (2) targets run in parallel, each for an equal share
#   TARGET        a target of tests/fuzz/readers (default: all)
# Starts from the inputs of tests/fuzz/corpus, keeps new inputs in build-address/corpus, and writes inputs that crash to
# build-address/crashes. The last line is "N executions, N crashes"; the exit code is 1 if there are crashes.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=10
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then minutes=$1; shift; fi
build=build-address
bash scripts/build_sanitized.sh address tests/fuzz_readers

mapfile -t all < <(XTAPE_FUZZ_TARGET= "$build/tests/fuzz_readers" 2>&1 | tail -n +2)
targets=("$@")
[ $# -gt 0 ] || targets=("${all[@]}")
jobs=${JOBS:-2}
seconds=$((minutes * 60 * jobs / ${#targets[@]}))
[ "$seconds" -gt 0 ] || seconds=1
mkdir -p "$build/crashes" "$build/logs"
touch "$build/begun"

export OMP_NUM_THREADS=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
run() { # run TARGET: restarts the target after a crash until its time is over
  local target=$1 end=$((SECONDS + seconds)) left
  mkdir -p "$build/corpus/$target"
  : >"$build/logs/$target"
  while left=$((end - SECONDS)); [ "$left" -gt 0 ]; do
    XTAPE_FUZZ_TARGET=$target "$build/tests/fuzz_readers" -max_total_time="$left" -timeout=20 -rss_limit_mb=4096 \
      -max_len=4096 -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/crashes/$target-" \
      "$build/corpus/$target" "tests/fuzz/corpus/$target" >>"$build/logs/$target" 2>&1 && break
    grep -q "stat::number_of_executed_units" "$build/logs/$target" || break  # the target failed to start
  done
}
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  run "$target" &
done
wait

executions=0
crashes=0
for target in "${targets[@]}"; do
  made=$(awk '/stat::number_of_executed_units/ {n += $2} END {print n + 0}' "$build/logs/$target")
  found=$(find "$build/crashes" -name "$target-*" ! -name "*-slow-unit-*" -newer "$build/begun" | wc -l)
  echo "$target: $made executions, $found crashes"
  executions=$((executions + made))
  crashes=$((crashes + found))
done
echo "$executions executions, $crashes crashes"
[ "$crashes" = 0 ]
