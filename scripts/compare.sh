#!/bin/bash
# Alternately runs the training benchmarks of xtape and PyTorch, and prints the ratios of time and peak memory.
# usage: compare.sh PATH/TO/torch_bench.py [--rounds N] [--only NAME,NAME] [--steps N] [--threads N] [--compile] [--precision NAME]
# TORCH_BENCH can also give the path of the script, and PYTHON the Python that has torch.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

case "${1:-}" in
  "" | --*) bench=${TORCH_BENCH:-} ;;
  *) bench=$1; shift ;;
esac
[ -n "$bench" ] && [ -f "$bench" ] || { echo "usage: compare.sh PATH/TO/torch_bench.py [--rounds N] [--only …] [--steps N] [--threads N]" >&2; exit 2; }

bash "$here/scripts/setup.sh"
bash "$here/scripts/build.sh" "$here/build"
exec "${PYTHON:-python3}" "$here/scripts/compare.py" "$here/build/tests/workloads" "$bench" "$@"
