#!/bin/bash
# Installs a wheel in a new virtual environment, where nothing else of xtape is found, and uses the program and the module.
#
# usage: bash packaging/try_wheel.sh WHEEL
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
example=$(cd "$(dirname "$0")/.." && pwd)/examples/languages/train.py
python3 -m venv "$root/python"
start=$SECONDS
env -u XTAPE_LIBRARY -u XTAPE_MODELS "$root/python/bin/pip" install -q "$1"
echo "installed in $((SECONDS - start)) s, with NumPy"
cd "$root"
export PATH=$root/python/bin:$PATH
xtape --version
xtape check gpt2
python3 "$example"
