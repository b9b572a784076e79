#!/bin/bash
# Formats all C++ of the repository with clang-format 14, as .clang-format says. With --check, changes nothing and fails where
# a file is not formatted. usage: format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(find src include tests examples -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' | sort)
if [ "${1:-}" != --check ]; then
  printf '%s\0' "${files[@]}" | xargs -0 -P2 -n 20 clang-format -i
  exit
fi
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "SKIPPED: clang-format 14 is not installed"
  echo "0 passed, 0 failed, 1 skipped"
  exit
fi
wrong=$(printf '%s\0' "${files[@]}" | xargs -0 -P2 -n 20 clang-format --dry-run 2>&1 | sed -n 's/^\([^ :]*\):.*/\1/p' | sort -u)
for file in $wrong; do echo "FAILED: $file is not formatted: bash scripts/format.sh"; done
[ -z "$wrong" ] && echo "1 passed, 0 failed" || { echo "0 passed, 1 failed" && exit 1; }
