#!/bin/bash
# Builds with clang++ and sanitizers, and runs the given suites (default: all). A sanitizer report is a failure.
# usage: sanitize.sh [address|thread] [SUITE…]
#   address (the default)  AddressSanitizer, its leak detection, and UBSan, in build-address/
#   thread                 ThreadSanitizer, in build-thread/
# JOBS (all processors) is the number of parallel compilers; PATIENCE (10) multiplies the time limit of a suite.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=address
case "${1:-}" in address | thread) kind=$1; shift ;; esac
build=build-$kind
bash scripts/build_sanitized.sh "$kind" src/cli/xtape

# Some suites do not run here: "install", "docs", "abi" and "languages" build external programs without sanitizers against the library;
# "faults" replaces functions of the C library, as the sanitizers also do; "limits" limits the address space, of which
# sanitizers take terabytes; "distributed" uses Open MPI, which leaks memory; those of the group "sources" run nothing
# of the library. The first line printed has the suites, the second what they need.
mapfile -t lines < <(python3 - "$build" "$@" <<'END'
import json, os, subprocess, sys
build, *wanted = sys.argv[1:]
tests, targets = (json.loads(subprocess.check_output(["meson", "introspect", what, build])) for what in ("--tests", "--targets"))
if not wanted:
    left_out = "abi", "distributed", "docs", "faults", "install", "languages", "limits"
    wanted = [test["name"] for test in tests if test["name"] not in left_out and "xtape:sources" not in test["suite"]]
files = {target["id"]: os.path.relpath(target["filename"][0], os.path.abspath(build)) for target in targets}
print(*wanted, sep=",")
print(*sorted({files[needed] for test in tests if test["name"] in wanted for needed in test["depends"]}))
END
)
read -ra targets <<<"${lines[1]}"
bash scripts/build_sanitized.sh "$kind" "${targets[@]}"

# The LAPACK that tests compare with uses only the calling thread, because its own threads are not instrumented.
export OPENBLAS_NUM_THREADS=1
# Reports go to files, so that no test can discard them and reports that do not end the program are also found.
reports=$PWD/$build/reports
rm -rf "$reports"
mkdir "$reports"
common=log_path=$reports/report:exitcode=99
if [ "$kind" = address ]; then
  export ASAN_OPTIONS=$common:detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
  export UBSAN_OPTIONS=$common:halt_on_error=0:print_stacktrace=1
else
  export TSAN_OPTIONS=$common:ignore_noninstrumented_modules=1
fi
code=0
python3 tests/run.py --patience "${PATIENCE:-10}" "$build:${lines[0]}" || code=1
found=$(find "$reports" -type f | wc -l)
if [ "$found" -gt 0 ]; then
  find "$reports" -type f -exec cat {} +
  code=1
fi
echo "$found reports"
exit $code
