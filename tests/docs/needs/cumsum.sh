# A model whose logits look ahead of what is cached.
cat >small.json <<'END'
{
  "xtape": 2,
  "name": "small",
  "use": ["blocks/linear.json"],
  "model": {
    "modules": {"word": {"block": "embedding", "rows": 7, "width": 4}},
    "functions": {
      "logits": {
        "inputs": {"tokens": "int [b, t]"},
        "do": ["y = cumsum(word(tokens), axis=1)"],
        "result": "einsum('b t d, vocab d -> b t vocab', y, word.weight)"
      }
    }
  }
}
END
