/// GPT-2 with low-rank adapters (Hu et al., 2022) beside each of its products.
#pragma once

#include <string>

namespace lora {

/// A definition. Weights of GPT-2 have their names; those of adapters end in lora_a and lora_b.
inline const std::string definition = R"json({
  "xtape": 2,
  "name": "gpt2_lora",
  "extends": "gpt2.json",
  "hyper": {"rank": 4, "alpha": 8},
  "blocks": {
    "conv1d": {
      "hyper": {"in": null, "out": null, "with_bias": true, "std": 0.02},
      "weights": {
        "weight": {"shape": ["in", "out"], "init": "normal", "std": "std"},
        "bias": {"shape": ["out"], "init": "zeros", "when": "with_bias"},
        "lora_a": {"shape": ["in", "rank"], "init": "uniform", "low": "-1 / sqrt(in)", "high": "1 / sqrt(in)"},
        "lora_b": {"shape": ["rank", "out"], "init": "zeros"}
      },
      "inputs": {"x": "float [..., in]"},
      "result": "einsum('... in, in out -> ... out', x, weight) + bias + x @ lora_a @ lora_b * (alpha / rank)"
    }
  }
})json";

}  // namespace lora
