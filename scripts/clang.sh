#!/bin/bash
# Builds everything with clang++, warnings being errors, into build-clang/, then runs the suites named (those of the core
# where none is). usage: clang.sh [SUITE…]; "all" runs every suite.
set -euo pipefail
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
bash scripts/setup.sh clang libomp-dev
cache=$(command -v ccache || true)
CC="$cache clang" CXX="$cache clang++" bash scripts/build.sh build-clang
suites=("$@")
[ $# -gt 0 ] || suites=(array kernels tape ops recording grad player)
list=$(IFS=,; echo "${suites[*]}")
[ "$list" != all ] || list=
python3 tests/run.py "build-clang:$list"
