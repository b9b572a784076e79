# A model whose loss is not finite from the start, and a text to train it on.
cp "$SOURCE"/examples/data/entropy*.json .
for _ in $(seq 100); do echo "ROMEO: is the day so young?"; done >text.txt
# The same for a model that masks some of its targets.
cat >masked.json <<'END_OF_MODEL'
{
  "xtape": 2,
  "name": "masked",
  "use": ["blocks/linear.json"],
  "hyper": {"vocab_size": 20, "width": 16},
  "model": {
    "modules": {
      "embedding": {"block": "embedding", "rows": "vocab_size", "pass": ["width"]},
      "output": {"block": "conv1d", "in": "width", "out": "vocab_size"}
    },
    "functions": {
      "loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": [
          "x = output(embedding(tokens))",
          "logits = masked_fill(x, iota((vocab_size,)) < 9, -inf)",
          "total, count = cross_entropy(logits, targets, ignore=-1)"
        ],
        "result": "total, count"
      }
    }
  }
}
END_OF_MODEL
sed 's/entropy/masked/' entropy_recipe.json >masked_recipe.json
