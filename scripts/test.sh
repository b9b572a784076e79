#!/bin/bash
# Installs packages, builds, and runs every test suite. The last line is "N passed, N failed", with ", N skipped"
# if this machine lacks something that a case needs. The exit code is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."

give_up() {
  echo "$1" >&2
  echo "0 passed, 1 failed"
  exit 1
}
bash scripts/setup.sh || give_up "the setup failed"
bash scripts/build.sh build || give_up "the build failed"
python3 tests/run.py build
