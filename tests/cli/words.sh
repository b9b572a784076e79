#!/bin/bash
# The options and arguments of the program: help, version, exit codes, output streams.
# usage: words.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"

echo "A Dog runs FAST." >"hypothesis"
echo "a dog RUNS fast ." >"reference"
printf 'a\nb\n' >"two"

expect 0 "^Look at a play:" "" --help
expect 0 "^  xtape show gpt2 " ""
expect 0 "^  gpt2 +GPT-2" "" show
expect 0 "^  shakespeare_char +Shakespeare's" "" show
XTAPE_MODELS=nowhere expect 2 "" "nowhere" show
expect 0 "^xtape [0-9]+\.[0-9]+\.[0-9]+$" "" --version
expect 0 "^instruction set [a-z0-9_]+" "" --version
(unset OMP_NUM_THREADS && "$xtape" --version) >threads
holds "the number of threads and what makes it" grep -q -E "^threads [0-9]+ \(of [0-9]+ processors?(: [^()]+)?\)$" threads
OMP_NUM_THREADS=3,2 expect 0 "^threads 3 \(OMP_NUM_THREADS\)$" "" --version
OMP_NUM_THREADS=many expect 1 "" "^xtape: OMP_NUM_THREADS must begin with a number of threads from 1 to 4096, not be 'many'$" --version
commands=$("$xtape" --help | sed -n '/^Train:/,/^Examples:/p' | awk '/^  [a-z]/ {print $1}')
holds "there are commands" [ -n "$commands" ]
holds "a command's help has no examples of others" eval '! "$xtape" ops --help | grep -q Examples'
for command in $commands; do
  expect 0 "Usage: .*$command" "" "$command" --help
  expect 2 "" "--no-such-option" "$command" --no-such-option
done
# Completions and the manual page have every command and every option of its help.
for shell in bash zsh fish man; do "$xtape" completion $shell >completion.$shell; done
for command in $commands; do "$xtape" "$command" --help | sed -nE 's/^ +(-h,)?(--[a-z-]+).*/\2/p'; done | sort -u >options
missing_in() { # missing_in SHELL SED_SCRIPT: the commands, and the options as the file spells them, that it does not have
  for word in $commands $(sed "$2" options); do grep -q -F -e "$word" completion.$1 || echo "$word"; done
}
holds "there are many options" [ "$(wc -l <options)" -gt 60 ]
holds "bash has every option" [ -z "$(missing_in bash '')" ]
holds "zsh has every option" [ -z "$(missing_in zsh 's/.*/*&[/')" ]
holds "fish has every option" [ -z "$(missing_in fish 's/--/-l_/' | sed 's/_/ /' | grep -v -x -F -f <(grep -o -e '-l [a-z-]*' completion.fish))" ]
holds "the manual has every option" [ -z "$(missing_in man 's/-/\\-/g')" ]
completed() ( # completed WORD…: what bash offers for the last word
  source completion.bash
  PATH=$(dirname "$xtape"):$PATH
  COMP_WORDS=(xtape "$@")
  COMP_CWORD=$#
  _xtape
  printf '%s\n' "${COMPREPLY[@]}"
)
holds "a command is completed" [ "$(completed exp)" = "export
explain" ]
holds "an option is completed" [ "$(completed eval --chec)" = --checkpoint ]
holds "a value is completed" [ "$(completed eval run --precision bf16)" = "bf16x3
bf16" ]
holds "a value behind = is completed" [ "$(completed generate run --bits = sa)" = same ]
holds "the name of a recipe is completed" [ "$(completed train shakespeare_c)" = shakespeare_char ]
holds "a file is completed" [ "$(completed bleu hypo)" = hypothesis ]
holds "the manual has the exit codes" [ "$(sed -n '/EXIT STATUS/,$p' completion.man | grep -c '^.TP')" = 4 ]
needs "groff" groff --version
holds "the manual is sound" [ -z "$(groff -man -ww -K utf8 -Tutf8 completion.man 2>&1 >/dev/null)" ]
needs "zsh" zsh --version
holds "zsh reads its completion" zsh -n completion.zsh
needs "fish" fish --version
holds "fish reads its completion" fish --no-execute completion.fish
needs_nothing
# Every option that takes a value, unless it is any text, refuses an empty one and numbers that are not finite.
values() { # values COMMAND TYPE: the options of the type
  "$xtape" "$1" --help | sed -nE "s/^ +(--[a-z-]+) $2.*/\1/p"
}
empty=0
for command in $commands; do
  for option in $(values "$command" "(TEXT|INT|UINT|FLOAT|SIZE|FILE)"); do
    expect 2 "" "^xtape: $option: must not be empty" "$command" "$option" ""
    empty=$((empty + 1))
  done
  for option in $(values "$command" FLOAT); do
    for number in nan -inf inf; do
      expect 2 "" "^xtape: $option: must be a finite number, not $number" "$command" "$option" "$number"
    done
  done
done
holds "there are many such options" [ $empty -gt 100 ]
expect 2 "" "^xtape: FOLDER: must not be empty" export run ""
expect 2 "" "^xtape: --tolerance: .*-1" diff run run --tolerance -1
"$xtape" --help >/dev/full 2>err
holds "a help that cannot be written: exit code 1" [ $? = 1 ]
holds "and an error" grep -q "cannot write to the standard output" err
expect 2 "" "no option '--epochs'; did you mean '--set epochs=…'" train shakespeare_char --epochs 3
expect 2 "" "no option '--step=3'; did you mean '--set steps=…'" train shakespeare_char --step=3
expect 2 "" "no option '--batch-size'; did you mean '--set batch.size=…'" profile shakespeare_char --batch-size 3
expect 2 "" "no option '--chekpoint'; did you mean '--checkpoint'" eval run --chekpoint last
expect 2 "" "no command 'trian'; did you mean 'train'" trian
expect 2 "" "unknown op 'sofmax'; did you mean 'softmax'" ops sofmax
expect 0 "softmax" "" ops softmax
expect 2 "" "no_such_model" show no_such_model.json
expect 2 "" "no_such_model" check no_such_model.json
expect 2 "" "no_such_recipe" train no_such_recipe.json --out "run"
expect 0 "^BLEU\|nrefs:1\|case:lc\|eff:no\|tok:13a\|smooth:exp\|version:xtape-[0-9.]+ = 100.00 100.0/100.0/100.0/100.0 \(BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5\)$" \
  "" bleu "hypothesis" "reference" --lowercase
expect 0 "= 0.00 0.0/0.0/0.0/0.0 " "" bleu "hypothesis" "reference" --tokenize none
expect 2 "" "no_such_file" bleu "no_such_file" "reference"
expect 2 "" "2 lines of hypotheses and 1 of references" bleu "two" "reference"
expect 2 "" 'got "intl"' bleu "hypothesis" "reference" --tokenize intl
expect 2 "" "no_such_run" eval "no_such_run"
expect 2 "" "no_such_run" generate "no_such_run" --prompt a --tokens 1
expect 0 "124[, ]?439[, ]?808" "" show "$source/models/gpt2.json"
# A definition is found by its name alone, as by an installed program.
unset XTAPE_MODELS
expect 0 "124[, ]?439[, ]?808" "" show gpt2
expect 0 "no mistake found" "" check gpt2
expect 0 "no mistake found" "" check gpt2 --with b=4
expect 2 "" "no function has a size 'tt'; did you mean 't'" check gpt2 --with b=4,tt=1
expect 0 "blocks, no mistake found" "" check "$source/models/blocks/linear.json"
expect 2 "" "no hyper-parameter 'n_layr'; did you mean 'n_layer'" show gpt2 --set n_layr=2
expect 2 "" "no file 'gp2', .*; did you mean 'gpt2'\?$" show gp2
expect 2 "" "no file 'lama', .*; did you mean 'llama'\?$" show lama
expect 2 "" "no file 'lama.json', .*; did you mean 'llama.json'\?$" show lama.json
expect 2 "" "no file 't', .*; did you mean 't5'\?$" show t
expect 2 "" "no file 'x', here or in [^ ]*$" show x
XTAPE_MODELS=$PWD/nowhere expect 2 "" "here or in .*/nowhere; set XTAPE_MODELS to the directory of the models$" show gpt2
expect 2 "" "no file 'sort', .*/recipes; did you mean 'sorting'\?$" train sort --out run
expect 2 "" "needs the size 't'" show gpt2 --tape logits --with b=1
expect 0 "cross_entropy" "" show gpt2 --tape loss --with b=2,t=4 --set hyper.n_layer=1
expect 0 "digraph" "" show gpt2 --tape loss --with b=2,t=4 --set n_layer=1 --grad --format dot
expect 2 "" "cannot read" run gpt2 loss --in "none" --out "out.safetensors" --set n_layer=1

# What a version is stands in one place; the documents say the same.
version=$("$xtape" --version | sed -n 's/^xtape //p')
holds "the changelog begins with this version" grep -q -m1 "^## $version\b" <<<"$(grep -m1 '^## ' "$source/docs/changelog.md")"
echo '{"xtape": 0}' >old.json
expect 2 "" "reads definitions of version [0-9]+" check old.json
format=$(sed -n 's/.*definitions of version \([0-9]*\).*/\1/p' err)
holds "the reference says the version of definitions" grep -q "^| .xtape. | The version of the format: $format[.]" "$source/docs/reference/definitions/files.md"
holds "installed definitions have it" [ -z "$(grep -L "\"xtape\": $format," "$source"/models/*.json "$source"/models/{blocks,functions}/*.json)" ]
sed 's/"xtape": 2/"xtape": 0/' "$source/models/recipes/adder.json" >old.json
expect 2 "" '"?xtape"?.* must be [0-9]+' train old.json --out run
recipe=$(grep -o 'must be [0-9]*' err | grep -o '[0-9]*$')
holds "docs/reference/recipes.md states the version of recipes" grep -q "^| .xtape. | $recipe | required | no | the version" "$source/docs/reference/recipes.md"

holds "a full device is a failure" bash -c '"$0" ops >/dev/full 2>/dev/null; [ $? = 1 ]' "$xtape"

# Output to a terminal is escaped; a pipe or file gets every byte.
vocabulary=$source/tests/golden/data/gpt2_small
printf 'a\x1b[31mb\tc \xc2\x9b2J\n' >steering
"$xtape" tokenize "$vocabulary" <steering >numbers
holds "a file gets control characters as they are" cmp -s steering <("$xtape" tokenize "$vocabulary" --detokenize <numbers)
needs script command -v script
script -qec "'$xtape' tokenize '$vocabulary' --detokenize <numbers" /dev/null | tr -d '\r' >shown
holds "a terminal gets them escaped" [ "$(cat shown)" = "a\\x1B[31mb	c \\xC2\\x9B2J" ]
needs_nothing
expect 2 "" 'no_such\\x1B\[31m' show "$(printf 'no_such\x1b[31m')"
finish
