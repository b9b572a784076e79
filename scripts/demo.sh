#!/bin/bash
# Trains the Transformer of models/transformer.json to translate Portuguese number words into English, then translates
# some held-out numbers.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
bash scripts/build.sh build

xtape=build/src/cli/xtape
run=build/demo
data=build/demo-data
rm -rf "$run"
build/examples/data/number_words "$data"
"$xtape" train models/recipes/number_words.json --set data.folder="$data" --out "$run"
"$xtape" eval "$run"

show() { # show SOURCE REFERENCE
  printf '\n  source       %s\n  translation  %s\n  reference    %s\n' "$1" "$("$xtape" translate "$run" <<<"$1")" "$2"
}
show "setecentos e trinta e oito" "seven hundred and thirty-eight"
show "três mil e sessenta" "three thousand and sixty"
show "sete mil setecentos e quarenta" "seven thousand seven hundred and forty"
show "seiscentos e trinta e nove mil e noventa e sete" "six hundred and thirty-nine thousand and ninety-seven"
show "trezentos e vinte e nove mil duzentos e vinte e três" "three hundred and twenty-nine thousand two hundred and twenty-three"
