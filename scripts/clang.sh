#!/bin/bash
# Builds everything with clang++ into build-clang/, with warnings as errors, then runs the given suites (default: the
# core suites). usage: clang.sh [SUITE…]; "all" runs every suite.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh clang
cache=$(command -v ccache || true)
CC="$cache clang" CXX="$cache clang++" bash scripts/build.sh build-clang
suites=("$@")
[ $# -gt 0 ] || suites=(base kernels-baseline kernels-avx2 kernels-avx512 tape ops recording grad player)
list=$(IFS=,; echo "${suites[*]}")
[ "$list" != all ] || list=
python3 tests/run.py "build-clang:$list"
