#!/bin/bash
# Installs a wheel in a new virtual environment, where nothing else of xtape is found, and uses the program and the module. For
# a wheel for AArch64, this is one of Debian's Python for that processor, under QEMU (scripts/aarch64.sh).
#
# usage: bash packaging/try_wheel.sh WHEEL
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
case $1 in
  *_"$(uname -m)".whl) run=() python=python3 ;;
  *_aarch64.whl) run=(bash "$here/scripts/aarch64.sh" run) python=$here/build-aarch64/root/usr/bin/python3.11 ;;
  *) echo "$1 is for no processor that this machine can try" >&2 && exit 2 ;;
esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
"${run[@]}" "$python" -m venv --without-pip "$root/python"
start=$SECONDS
unset XTAPE_LIBRARY XTAPE_MODELS
"${run[@]}" pip --python "$root/python/bin/python3" install -q "$1"
echo "installed in $((SECONDS - start)) s, with NumPy"
cd "$root"
export PATH=$root/python/bin:$PATH
"${run[@]}" xtape --version
"${run[@]}" xtape check gpt2
"${run[@]}" python3 "$here/examples/languages/train.py"
