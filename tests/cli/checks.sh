#!/bin/bash
# xtape check: recording, and playing with --play.
# usage: checks.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export OMP_NUM_THREADS=1 XTAPE_MODELS="$source/models"

# definition LINE: writes definition.json, a model whose logits are computed by LINE.
definition() {
  cat >definition.json <<EOF
{
  "xtape": 2,
  "name": "small",
  "use": ["blocks/linear.json"],
  "hyper": {"vocab_size": 7, "width": 4, "layers": 2},
  "blocks": {
    "cell": {"inputs": ["x", "h"], "do": ["h = tanh(h + x)"], "result": "h[-1], h"}
  },
  "model": {
    "modules": {"word": {"block": "embedding", "rows": "vocab_size", "width": "width"}, "cell": {"block": "cell"}},
    "functions": {
      "states": {"inputs": {"x": "float [b, t, width]"}, "result": "scan(cell, x, init=zeros((layers, b, width)))[0]"},
      "logits": {
        "inputs": {"tokens": "int [b, t]"},
        "do": ["x = word(tokens)", "$1"],
        "result": "einsum('b t d, vocab d -> b t vocab', y, word.weight)"
      }
    }
  }
}
EOF
}
no_mistake="definition.json: 2 functions, 28 parameters, no mistake found"
definition "y = scan(cell, x, init=zeros((1, b, width)), axis=1)[0]"
expect 0 "$no_mistake" "" check definition.json
holds "a check without --play reports that it only records" grep -q "^recorded, not played: with --play" out
expect 2 "" "definition.json, function 'logits', line 15: scan: in mode predict a state must have a row for each of the 3 rows of tokens, got float64 \(1, 3, 4\)" \
  check definition.json --play
definition "y = cumsum(x, axis=1)"
expect 0 "$no_mistake" "" check definition.json
expect 2 "" "function 'logits' of model 'small' gives other values in pieces, as in generation, than for the whole: .* instead of .* at row [0-9], position [0-9], class [0-9] \(3 rows of 9 tokens, in pieces of 5, 1, 2, 1\)" \
  check definition.json --play
holds "the wrong call is named" \
  grep -q "The first call whose values differ: cumsum, logits (.*definition.json, function 'logits', line 15)" err
expect 2 "" "at row [0-9], position [0-9], class [0-9] \(2 rows of 4 tokens" check definition.json --play --with b=2,t=4
definition "y = x + mean(x, axis=1, keepdims=true)"
expect 2 "" "function 'logits' of model 'small' looks ahead" check definition.json --play
definition "y = x"
expect 0 "^played 'logits' on 3 rows of 9 tokens: pieces of 5, 1, 2, 1 tokens give the same as the whole \(difference [0-9.e-]+\)$" "" \
  check definition.json --play
sed 's/"tokens": "int/"kinds": "int/; s/word(tokens)/word(kinds)/' definition.json >other.json
expect 0 "^nothing to play: 'logits' takes no tokens$" "" check other.json --play
sed 's/"logits"/"scores"/' definition.json >other.json
expect 0 "^nothing to play: there is no function 'logits'$" "" check other.json --play

# Names that hide others are warnings.
definition 'y = x", "cell = 2'
expect 0 "$no_mistake" "^warning: definition.json, function 'logits', line 15: 'cell' hides the module of this name$" \
  check definition.json
definition "y = x"
sed 's/"blocks": {/&\n"linear": {"inputs": ["x"], "result": "x"},/' definition.json >other.json
expect 0 "no mistake found" "^warning: other.json, block 'linear', line 7: it hides the block of this name in blocks/linear.json$" \
  check other.json

# Inputs that no line uses, of functions and blocks; one that gives a size is used.
definition "y = x + sum(zeros((m,)))"
sed -i 's/"tokens": "int \[b, t\]"/&, "times": "int [m]"/' definition.json
expect 0 "$no_mistake" "" check definition.json
definition "y = x"
sed 's/\["x", "h"\]/["x", "h", "valid"]/' definition.json >other.json
expect 2 "" "other.json, block 'cell', line 7: input 'valid' is never used: no line mentions it, and it is not called '_valid'" check other.json
sed 's/\["x", "h"\]/["x", "h", "*_others"]/' definition.json >other.json
expect 0 "no mistake found" "" check other.json
sed 's/"tokens": "int \[b, t\]"/&, "mask": "bool [b, t]"/' definition.json >other.json
expect 2 "" "other.json, function 'logits', line 14: input 'mask' is never used: no line mentions it$" check other.json

# A recipe is checked with its definition and data: columns, sizes, labels.
printf 'a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n' >table.csv
printf 'one\ta b\ntwo\ta c\nthree\ta b\none\tb c\n' >texts.tsv
table=(check regression --set data.arrays=table.csv --set data.held_out=1 --set batch.size=2)
texts=(check classify_texts --set data.table=texts.tsv --set batch.size=2)
expect 0 "^regression: recipe, data and definition fit: 4,421 parameters, batches of x \(2, 2\), y \(2, 1\)$" "" "${table[@]}"
expect 0 "^classify_texts: recipe, data and definition fit" "" "${texts[@]}"
expect 2 "" "table.csv has no column 'z', which input 'y' names \(columns: a, b, y\); name another one with --set 'data.inputs.y=\[\"COLUMN\"\]'$" \
  "${table[@]}" --set 'data.inputs.y=["z"]'
expect 2 "" "table.csv has no column 'z'.*; name another one with --set data.inputs.y=COLUMN$" "${table[@]}" --set data.inputs.y=z
expect 2 "" "input 'x' of function 'loss' of model 'mlp' is float32 \(2, 5\), the data has \(2, 2\)$" "${table[@]}" --set hyper.in=5
expect 2 "" "the data has 3 labels, but function 'logits' of model 'text_classifier' gives float32 \(2, 2\): label 'two' has no logit" \
  "${texts[@]}" --set hyper.classes=2
expect 2 "" "--play and --with check a definition, and 'regression' is a recipe" "${table[@]}" --play

# The first evaluation is tried on rows of the data, with the functions that only evaluations play.
printf '1+1=2\n2+1=3\n2+3=5\n3+2=5\n1+2=3\n' >sums.txt
# functions FUNCTIONS: writes recipe.json and definition.json, a model with these functions.
functions() {
  cat >definition.json <<EOF
{"xtape": 2, "name": "small", "use": ["blocks/linear.json"], "hyper": {"vocab_size": null},
 "model": {"modules": {"word": {"block": "embedding", "rows": "vocab_size", "width": 4}}, "functions": {$1}}}
EOF
}
cat >recipe.json <<EOF
{"xtape": 2, "name": "small", "definition": "definition.json", "hyper": {"vocab_size": {"from": "vocabulary"}},
 "data": {"kind": "documents", "text": "sums.txt", "separator": "line", "held_out": 1}, "batch": {"size": 2},
 "optimizer": {"kind": "adam"}, "schedule": {"kind": "constant", "rate": 0.1}, "steps": 1}
EOF
inputs='"inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"}'
mean="\"loss\": {$inputs, \"result\": \"mean(word(tokens))\"}"
functions "$mean"
expect 0 "^recipe.json: recipe, data and definition fit: 40 parameters" "" check recipe.json # of targets, no line needs any
# refused WHY RESULT: check refuses the function \`accuracy\`, and training does too.
refused() {
  functions "$mean, \"accuracy\": {$inputs, \"result\": \"$2\"}"
  expect 2 "" "$1" check recipe.json
  rm -rf run
  expect 1 "" "$1" train recipe.json --out run
}
refused "function 'accuracy' of model 'small' must have two results of one element" "tokens, targets"
refused "take: index [0-9]+ \(at flat position [0-9]\) is out of range: x has size 10 along the axis" "sum(take(word.weight, tokens + 9)), sum(targets)"
refused "accuracy of the evaluation after update [01], in its batch 1, is not finite: NaN in .* log" "sum(log(-1.0 - cast(tokens, 'float'))), sum(targets)"
functions "$mean, \"plain_loss\": {\"inputs\": {\"tokens\": \"int [b, t]\"}, \"result\": \"1.0\"}"
expect 2 "" "function 'plain_loss': takes \(tokens\), not 'targets'" check recipe.json
# What fails only with weights of zero, or with a single row, is no mistake.
functions "$mean, \"plain_loss\": {$inputs, \"result\": \"sum(word.weight / word.weight), 1\"}"
expect 0 "fit" "" check recipe.json
functions "$mean, \"accuracy\": {$inputs, \"result\": \"sum(rearrange(tokens, '(two b) t -> two b t', two=2)), 1\"}"
expect 0 "fit" "" check recipe.json --set data.held_out=2
# Numbers that are out of range are found in any row.
functions "$mean"
expect 2 "" "take: index 9 \(at flat position [0-9]\) is out of range: x has size 9 along the axis" check recipe.json --set hyper.vocab_size=9

# A hyper-parameter without effect is a mistake, in a definition, a recipe and a setting.
echo '{"xtape": 2, "name": "small_t5", "extends": "t5.json", "hyper": {"n_heads": 1}}' >other.json
expect 2 "" "other.json, line 1: hyper-parameter 'n_heads' has no effect: no line mentions it; did you mean 'heads'\?" check other.json
expect 2 "" "hyper-parameter 'n_heads' has no effect" show other.json
echo '{"xtape": 2, "name": "plain_t5", "extends": "t5.json", "model": {"functions": {"plain_loss": null, "loss": null}}}' >other.json
expect 0 "^other.json: 5 functions, " "" check other.json
expect 2 "" "hyper-parameter 'label_smoothing' of .*other.json cannot be set to 0.1: it has no effect, since no line mentions it" \
  check other.json --set label_smoothing=0.1
expect 0 "^other.json: 5 functions, " "" check other.json --set encoder_layers=1
echo '{"xtape": 2, "name": "sum", "hyper": {"unit": 1, "width": "3 * unit", "unused": 2},
 "model": {"functions": {"f": {"inputs": {"x": "float [width]"}, "result": "x"}}}}' >other.json
expect 2 "" "hyper-parameter 'unused' has no effect: no line mentions it; those with an effect are unit, width" check other.json
expect 0 "width = 15" "" show other.json --set unit=5 # only another hyper-parameter mentions it
expect 2 "" "hyper-parameter 'unused' of .*other.json cannot be set to 3" show other.json --set unused=3

# Of a published folder, the shapes of the weights are read.
cp -r "$source/tests/golden/data/hugging_face/tiny" folder
sed -i 's/"n_embd": *[0-9]*/"n_embd": 24/' folder/config.json
expect 2 "" "of another shape: transformer.wpe.weight is \(80, 16\), the model's is \(80, 24\)" check folder

# For every definition and its variants, playing step by step gives the same as playing the whole.
plays() { expect 0 "^played 'logits'" "" check "$@" --play; }
gpt2=(gpt2 --set vocab_size=30 --set n_embd=12 --set n_head=3 --set n_layer=2)
plays "${gpt2[@]}" --set n_positions=16
plays "${gpt2[@]}" --set n_positions=5
plays gpt2_lora "${gpt2[@]:1}"
plays padded_gpt2 "${gpt2[@]:1}" --set tied=false --set scale_by_layer=true
plays "${gpt2[@]}" --dtype float32
gru=(gru_attention --set source_vocab_size=20 --set embedding_dim=6 --set units=8)
plays "$source/tests/golden/data/hugging_face/tiny"
plays "${gru[@]}"
plays "${gru[@]}" --set directions=2
plays lstm_attention --set source_vocab_size=20 --set width=8 --set heads=2
plays lstm_lm --set vocab_size=20 --set width=8
transformer=(--set d_model=8 --set d_ff=12 --set heads=2)
plays transformer "${transformer[@]}" --set source_vocab_size=20 --set encoder_layers=2 --set decoder_layers=2
plays transformer "${transformer[@]}" --set source_vocab_size=20 --set norm_first=true --set positions=learned
t5=(t5 --set vocab_size=20 --set d_model=8 --set d_ff=12 --set heads=2 --set d_kv=4 --set encoder_layers=2 --set buckets=6 --set max_distance=5)
plays "${t5[@]}"
plays "${t5[@]}" --set gated=true
llama=(llama --set vocab_size=20 --set d_model=16 --set d_ff=12 --set heads=4 --set layers=2)
plays "${llama[@]}"
plays "${llama[@]}" --set key_value_heads=2 --set "rope_scaling='llama3'" --set rope_factor=2.0 --set rope_first_positions=6 --set max_positions=64
for model in llama mistral qwen3; do plays ${model}_lora "${llama[@]:1}"; done
for model in gpt_neox phi opt; do plays $model --set vocab_size=20 --set d_model=16 --set heads=2 --set layers=2; done
plays mixtral "${llama[@]:1}" --set num_experts=5
plays qwen3_moe "${llama[@]:1}" --set head_dim=4 --set num_experts=5 --set used_experts=3
mamba2=(mamba2 --set vocab_size=20 --set d_model=16 --set head_dim=8 --set state=5 --set layers=2)
plays "${mamba2[@]}" --set groups=2 --set chunk_size=4
# Blocks that read the last positions, fewer and more of them than a piece has.
cat >recent.json <<'EOF'
{
  "xtape": 2, "name": "recent", "use": ["blocks/linear.json", "blocks/recent.json"],
  "model": {
    "modules": {
      "word": {"block": "embedding", "rows": 7, "width": 4}, "shift": {"block": "previous"},
      "far": {"block": "previous", "distance": 6}, "conv": {"block": "causal_convolution", "width": 4}
    },
    "functions": {"logits": {
      "inputs": {"tokens": "int [b, t]"},
      "do": ["x = word(tokens)", "y = 0.5 * x + tanh(conv(x)) * shift(x) + far(x)", "y = y + tanh(conv(y))"],
      "result": "einsum('b t d, vocab d -> b t vocab', y, word.weight)"
    }}
  }
}
EOF
plays recent.json
plays transformer_lm "${transformer[@]}" --set vocab_size=20 --set layers=2

# --fix rewrites what is in the form of an earlier version, and nothing else.
mkdir old && cd old
cat >blocks.json <<'EOF'
{"xtape": 2, "name": "blocks", "use": ["blocks/linear.json", "blocks/activation.json"], "blocks": {
  "maps": { "about": "'gelu' and =init stay here.",
    "hyper": {"width": null, "activation":   "'gelu'", "init": "'normal' if width > 3 else 'ones'"},
    "modules": {"act": {"block": "=activation"}, "map": {"block":"linear", "in": "width", "out": "width", "pass": ["init"]}},
    "weights": {"scale": {"shape": ["width"], "init": "=init"}},
    "inputs": ["x"], "result": "act(map(x)) * scale  # 'gelu'"}}}
EOF
cat >old.json <<'EOF'
{"xtape": 2, "name": "old", "use": ["blocks.json", "blocks/activation.json"],
 "hyper": {"activation": "'relu'", "order": "'i_f'", "width": 4},
 "model": {"modules": {"maps": {"block": "maps", "pass": ["activation", "width"]}},
  "functions": {"logits": {"inputs": {"x": "float [b, width]"}, "result": "maps(x) if order == 'i_f' else x"}}}}
EOF
cat >recipe.json <<'EOF'
{"xtape": 1, "name": "old", "definition": "old.json", "hyper": {"activation": "gelu", "order": "f_i", "width": "2 * 3"},
 "data": {"kind": "arrays", "arrays": "a.npz"}, "batch": {"size": 2}, "optimizer": {"kind": "sgd"},
 "schedule": {"kind": "constant", "rate": 0.1}, "steps": 1}
EOF
expect 2 "" "blocks.json, .* line 5: write init in place of =init: .*check --fix FILE" check --fix old.json
expect 2 "" "'xtape' must be 2: 'xtape check --fix FILE' rewrites a recipe of version 1" check recipe.json
expect 0 "^recipe.json, line 1: \"f_i\" becomes \"'f_i'\"$" "" check --fix recipe.json old.json blocks.json
holds "definitions are rewritten" cmp -s blocks.json <<'EOF'
{"xtape": 2, "name": "blocks", "use": ["blocks/linear.json", "blocks/activation.json"], "blocks": {
  "maps": { "about": "'gelu' and =init stay here.",
    "hyper": {"width": null, "activation":   "gelu", "init": "normal if width > 3 else ones"},
    "modules": {"act": {"block": "activation"}, "map": {"block":"linear", "in": "width", "out": "width", "pass": ["init"]}},
    "weights": {"scale": {"shape": ["width"], "init": "init"}},
    "inputs": ["x"], "result": "act(map(x)) * scale  # 'gelu'"}}}
EOF
holds "texts keep their quotes" grep -q "\"hyper\": {\"activation\": \"relu\", \"order\": \"'i_f'\", \"width\": 4}" old.json
holds "recipes are rewritten" grep -q "^{\"xtape\": 2, .*\"hyper\": {\"activation\": \"gelu\", \"order\": \"'f_i'\", \"width\": \"2 \* 3\"}" recipe.json
expect 0 "^old.json: 1 functions, " "" check old.json
expect 0 "order = 'f_i'" "" show old.json --set "order='f_i'" --set activation=gelu
expect 0 "^old.json, recipe.json: nothing is in the form of an earlier version$" "" check --fix old.json recipe.json
expect 2 "" "cannot read 'none.json'" check --fix none.json
echo '{"xtape": 1, "data": {}, "hyper": {}, "definition": 4}' >wrong.json
expect 0 "^wrong.json, line 1: 1 becomes 2$" "" check --fix wrong.json
cd ..
finish
