#!/bin/bash
# Runs benchmarks of xtape and a peer in turn, and prints a table. Without arguments: time and memory of the training
# steps and of generating in docs/explanation/performance.md, beside PyTorch. Asks before it installs a peer (peers.sh).
# usage: compare.sh [--only NAME,NAME] [--precision float32,bf16] [--rounds N] [--steps N] [--threads N] [--compile]
#                   [--beside N,N]
#        compare.sh translation RUN SOURCE [--rounds N] [--threads N]    beside CTranslate2
#        compare.sh recurrent TEXT                                       a training of minutes, beside PyTorch
set -euo pipefail
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE # which can select slow kernels of a peer's OpenBLAS

case "${1:-}" in
  translation) python=$(bash scripts/peers.sh numpy ctranslate2) targets=(tests/translation) ;;
  recurrent) python=$(bash scripts/peers.sh torch) targets=(src/cli/xtape) ;;
  *) python=$(bash scripts/peers.sh torch) targets=(tests/workloads) ;;
esac
bash scripts/setup.sh
bash scripts/build.sh build "${targets[@]}"
exec "$python" scripts/compare.py "$@"
