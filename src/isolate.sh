#!/bin/bash
# Links object files into one, in which a single symbol is visible. usage: isolate.sh OUTPUT SYMBOL OBJECT…
set -euo pipefail
output=$1 symbol=$2
shift 2
# Groups of duplicates (COMDAT) would be merged with those of other files although their symbols are local.
ld -r --force-group-allocation -o "$output.joined" "$@"
mangled=$(nm --defined-only "$output.joined" | awk '{print $3}' | grep -F "$symbol" | head -1)
objcopy --keep-global-symbol="$mangled" "$output.joined" "$output"
rm "$output.joined"
