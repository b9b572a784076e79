#!/bin/bash
# Links object files into one object file in which a single symbol is visible. Usage: isolate.sh OUTPUT SYMBOL OBJECT…
set -euo pipefail
output=$1 symbol=$2
shift 2
# Without --force-group-allocation, the linker would merge COMDAT groups with those of other files, although their symbols are local.
ld -r --force-group-allocation -o "$output.joined" "$@"
mangled=$(nm --defined-only "$output.joined" | awk '{print $3}' | grep -F "$symbol" | head -1)
objcopy --keep-global-symbol="$mangled" "$output.joined" "$output"
rm "$output.joined"
