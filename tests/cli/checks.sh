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
for model in gpt_neox phi opt; do plays $model --set vocab_size=20 --set d_model=16 --set heads=2 --set layers=2; done
plays transformer_lm "${transformer[@]}" --set vocab_size=20 --set layers=2
finish
