#!/bin/bash
# Runs the training benchmarks of xtape and PyTorch in turn, and prints a table of time and peak memory. Without options,
# the table is that of docs/performance.md.
# usage: compare.sh [--only NAME,NAME] [--precision float32,bf16] [--rounds N] [--steps N] [--threads N] [--compile]
set -euo pipefail
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

python=$(bash scripts/peers.sh torch)
bash scripts/setup.sh
bash scripts/build.sh build tests/workloads
exec "$python" scripts/compare.py "$@"
