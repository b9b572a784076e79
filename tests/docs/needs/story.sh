# A model whose loss is NaN from the start, and a text to train it on.
for _ in $(seq 100); do echo "ROMEO: is the day so young?"; done >text.txt
cat >entropy.json <<'END'
{
  "xtape": 2,
  "name": "entropy",
  "use": ["blocks/linear.json"],
  "hyper": {"vocab_size": 20, "width": 16, "penalty": 0.01},
  "model": {
    "modules": {
      "embedding": {"block": "embedding", "rows": "vocab_size", "pass": ["width"]},
      "query": {"block": "conv1d", "in": "width", "out": "width"},
      "key": {"block": "conv1d", "in": "width", "out": "width"},
      "output": {"block": "conv1d", "in": "width", "out": "vocab_size"}
    },
    "functions": {
      "loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": [
          "x = embedding(tokens)",
          "scores = einsum('b q d, b k d -> b q k', query(x), key(x))",
          "p = softmax(masked_fill(scores, causal_mask(tokens), -inf))",
          "entropy = -sum(p * log(p))",
          "total, count = cross_entropy(output(einsum('b q k, b k d -> b q d', p, x)), targets, ignore=-1)"
        ],
        "result": "total + penalty * entropy, count"
      }
    }
  }
}
END
cat >entropy_recipe.json <<'END'
{
  "xtape": 1,
  "name": "entropy_recipe",
  "definition": "entropy.json",
  "hyper": {"vocab_size": {"from": "vocabulary"}},
  "data": {"kind": "text", "text": "text.txt", "split": 0.9, "block_size": 16},
  "tokenizer": {"kind": "character"},
  "batch": {"size": 4},
  "optimizer": {"kind": "adamw"},
  "schedule": {"kind": "constant", "rate": 1e-3},
  "steps": 20,
  "seed": 1
}
END
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
