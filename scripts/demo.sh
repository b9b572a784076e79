#!/bin/bash
# Trains the Transformer of models/transformer.json to translate Portuguese number words into English, then translates
# some held-out numbers. In the archive of packaging/static.sh, uses the program there. Else builds only the program and the
# one that writes the data, for this processor, in build-demo, with the options that compile fastest. The trained weights
# must have the SHA-256 in README.md. With --write-hash, writes the one that it finds there, after a change of the results.
# Busybox's shell runs this script too.
set -euo pipefail
cd "$(dirname "$0")/.."
begin=$(date +%s)
passed() { printf '%d:%02d' $((($(date +%s) - begin) / 60)) $((($(date +%s) - begin) % 60)); }
say() { printf '\n%s (%s)\n' "$*" "$(passed)"; }

if [ -x share/xtape/number_words ]; then
  say "1 of 3: using $PWD/bin/xtape"
  folder=. programs=bin words=share/xtape/number_words readme=share/doc/xtape/README.md
else
  say "1 of 3: building"
  bash scripts/setup.sh --program
  bash scripts/configure.sh build-demo -Dtests=false -Dnative=true -Dmpi=disabled -Donnx=disabled -Doptimization=g \
    -Dwarning_level=0 -Dwerror=false
  bash scripts/build.sh build-demo src/cli/xtape examples/data/number_words
  folder=build-demo programs=build-demo/src/cli words=build-demo/examples/data/number_words readme=README.md
fi
xtape=$programs/xtape
run=$folder/numbers
data=$folder/number-words

say "2 of 3: training"
rm -rf "$run"
"$words" "$data"
"$xtape" train number_words --set data.folder="$data" --set steps=400 --set evaluate_every=200 --out "$run"

found=$(sha256sum <"$run"/checkpoints/00000400/weights.safetensors | cut -d ' ' -f 1)
[ "${1:-}" != --write-hash ] || sed -i -E "s/[0-9a-f]{64}/$found/" "$readme"
expected=$(grep -oE '[0-9a-f]{64}' "$readme")
printf 'SHA-256 of the weights: %s\n              expected: %s\n' "$found" "$expected"
if [ "$found" != "$expected" ]; then
  echo "They differ: docs/explanation/bits.md says which processors compute the same bits, and this one is"
  "$xtape" --version
fi

say "3 of 3: translating numbers that the training has not seen"
show() { # show SOURCE REFERENCE
  printf '  %s\n  -> %s\n' "$1" "$(echo "$1" | "$xtape" translate "$run")"
  [ $# -eq 1 ] || printf '     %s\n' "(right: $2)"
}
show "setecentos e trinta e oito" "seven hundred and thirty-eight"
show "três mil e sessenta" "three thousand and sixty"
show "seiscentos e trinta e nove mil e noventa e sete" "six hundred and thirty-nine thousand and ninety-seven"
show "trezentos e vinte e nove mil duzentos e vinte e três" "three hundred and twenty-nine thousand two hundred and twenty-three"

cat <<END

Done in $(passed). To try next:
  export PATH=$PWD/$programs:\$PATH
  cd $PWD
  xtape translate $run   # numbers of your own, in Portuguese words
  xtape attention $run --source "três mil e sessenta"   # draws attention.svg
  xtape show   # the models and recipes; xtape show transformer prints one
  xtape train shakespeare_char --set data.text=$data/training.tsv --set steps=100 --out runs/gpt   # a GPT
  xtape generate runs/gpt --prompt "cento e "
END
[ $folder = . ] || cat <<END
For ONNX files and several processes, bash scripts/test.sh installs what is missing and builds build/src/cli/xtape.
docs/tutorials/own_gpt.md is for models of your own, docs/tutorials/regression.md for programs in C++.
END
