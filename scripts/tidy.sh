#!/bin/bash
# clang-tidy 14 examines src and include, as .clang-tidy says. With sources, only the units that have them. The suite
# "tidy". usage: tidy.sh [FILE.cpp…]   JOBS (2) is the number of units at a time
set -euo pipefail
cd "$(dirname "$0")/.."
if ! clang-tidy --version 2>/dev/null | grep -q 'version 14\.' || ! command -v clang++ >/dev/null; then
  echo "SKIPPED: clang-tidy 14 is not installed: bash scripts/setup.sh clang clang-tidy"
  echo "0 passed, 0 failed, 1 skipped"
  exit
fi
directory=build-clang-reads
CC=clang CXX=$PWD/scripts/clang_reader.sh bash scripts/configure.sh $directory
mapfile -t headers < <(ninja -C $directory -t targets rule cpp_PCH | grep '^src/')
ninja -C $directory --quiet "${headers[@]}" >&2
mapfile -t units < <(python3 - $directory "$@" <<'PYTHON'
import json, os, sys
directory, *named = sys.argv[1:]
named = [os.path.abspath(file) for file in named]
units = {}  # kernels once, for the last instruction set
for entry in json.load(open(f"{directory}/compile_commands.json")):
    file = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if entry["output"].startswith("src/") and entry["output"].endswith(".o"):
        units[file] = entry
def sources(file):
    inside = [line[len("#include<"):-2] for line in open(file) if "unity" in file]
    return {file, *map(os.path.normpath, inside)}
units = {file: entry for file, entry in units.items() if not named or sources(file) & set(named)}
os.makedirs(f"{directory}/tidy", exist_ok=True)
json.dump(list(units.values()), open(f"{directory}/tidy/compile_commands.json", "w"))
print(*units, sep="\n")
PYTHON
)
printf '%s\n' "${units[@]}" | xargs -P "${JOBS:-2}" -n 1 bash -c '
  clang-tidy -p "$0" --quiet "$1" 2>/dev/null || echo "FAILED: $1"' $directory/tidy >$directory/tidy/found
grep -v '^FAILED: ' $directory/tidy/found || true
failed=$(grep -c '^FAILED: ' $directory/tidy/found) || true
echo "$((${#units[@]} - failed)) passed, $failed failed"
[ "$failed" = 0 ]
