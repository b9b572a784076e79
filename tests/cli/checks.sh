#!/bin/bash
# xtape check: recording, and playing with --play.
# usage: checks.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export OMP_NUM_THREADS=1 XTAPE_MODELS="$source/models"

# definition LINE: writes definition.json, a model whose logits are computed by LINE.
definition() {
  cat >definition.json <<EOF
{
  "xtape": 1,
  "name": "small",
  "use": ["blocks/linear.json"],
  "hyper": {"vocab_size": 7, "width": 4, "layers": 2},
  "blocks": {
    "cell": {"inputs": ["x", "h"], "do": ["h = tanh(h + x)"], "result": "h[-1], h"}
  },
  "model": {
    "parts": {"word": {"block": "embedding", "rows": "vocab_size", "width": "width"}, "cell": {"block": "cell"}},
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
expect 2 "" "table.csv has no column 'z', which input 'y' names \(columns: a, b, y\)$" "${table[@]}" --set 'data.inputs.y=["z"]'
expect 2 "" "input 'x' of function 'loss' of model 'mlp' is float32 \(2, 5\), the data has \(2, 2\)$" "${table[@]}" --set hyper.in=5
expect 2 "" "the data has 3 labels, but function 'logits' of model 'text_classifier' gives float32 \(2, 2\): label 'two' has no logit" \
  "${texts[@]}" --set hyper.classes=2
expect 2 "" "--play and --with check a definition, and 'regression' is a recipe" "${table[@]}" --play

# Of a published folder, the shapes of the weights are read.
cp -r "$source/tests/golden/hugging_face/tiny" folder
sed -i 's/"n_embd": *[0-9]*/"n_embd": 24/' folder/config.json
expect 2 "" "of another shape: transformer.wpe.weight is \(80, 16\), the model's is \(80, 24\)" check folder

# For every definition and its variants, playing step by step gives the same as playing the whole.
plays() { expect 0 "^played 'logits'" "" check "$@" --play; }
gpt2=(gpt2 --set vocab_size=30 --set n_embd=12 --set n_head=3 --set n_layer=2)
plays "${gpt2[@]}" --set n_positions=16
plays "${gpt2[@]}" --set n_positions=5
plays gpt2_lora "${gpt2[@]:1}"
plays "${gpt2[@]}" --set padded=true --set tied=false --set scale_by_layer=true
plays "${gpt2[@]}" --dtype float32
gru=(gru_attention --set source_vocab_size=20 --set embedding_dim=6 --set units=8)
plays "$source/tests/golden/hugging_face/tiny"
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
plays "${llama[@]}" --set key_value_heads=2 --set rope_scaling=llama3 --set rope_factor=2.0 --set rope_first_positions=6 --set max_positions=64
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
finish
