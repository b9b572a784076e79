#!/bin/bash
# Prints a Python that has the given modules: that of $PYTHON, the system's, or build/peers. If none has them, asks
# whether to install them into the virtual environment build/peers; with XTAPE_INSTALL_PEERS=1 it does not ask.
# usage: peers.sh MODULE…
set -euo pipefail
cd "$(dirname "$0")/.."

has() { # has PYTHON MODULE…
  local python=$1
  shift
  command -v "$python" >/dev/null && "$python" -c "import $(IFS=,; echo "$*")" 2>/dev/null
}
for python in ${PYTHON:-} python3 build/peers/bin/python; do
  if has "$python" "$@"; then
    command -v "$python"
    exit 0
  fi
done

if [ "${XTAPE_INSTALL_PEERS:-}" != 1 ]; then
  [ -t 0 ] || { echo "no Python here has $*: set PYTHON, or XTAPE_INSTALL_PEERS=1 to install them into build/peers" >&2; exit 1; }
  read -r -p "No Python here has $*. Install them into build/peers (PyTorch takes several GB)? [y/N] " answer
  [[ "$answer" == [yY]* ]] || exit 1
fi
python3 -m venv build/peers >&2
build/peers/bin/pip install --quiet numpy "$@" >&2
has build/peers/bin/python "$@" || { echo "build/peers still cannot import $*" >&2; exit 1; }
echo "$PWD/build/peers/bin/python"
