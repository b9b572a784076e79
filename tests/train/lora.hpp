/// GPT-2 with low-rank adapters (Hu et al., 2022) beside the products that make queries, keys and values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "source_root.hpp"
#include "xtape/text.hpp"

namespace lora {

/// The definition, as text. Its own weights have the names of GPT-2's; those of adapters end in lora_a and lora_b.
inline std::string definition() {
  auto json = nlohmann::ordered_json::parse(xtape::read_text(xtape::source_root() + "/models/gpt2.json"));
  json["name"] = "gpt2_lora";
  json["hyper"]["rank"] = 4;
  json["hyper"]["alpha"] = 8;
  json["blocks"]["adapted"] = nlohmann::ordered_json::parse(R"json({
    "about": "conv1d, and a product of rank `rank` beside it that is 0 at first.",
    "hyper": {"in": null, "out": null, "with_bias": true, "std": 0.02},
    "weights": {
      "weight": {"shape": ["in", "out"], "init": "normal", "std": "std"},
      "bias": {"shape": ["out"], "init": "zeros", "when": "with_bias"},
      "lora_a": {"shape": ["in", "rank"], "init": "uniform", "low": "-1 / sqrt(in)", "high": "1 / sqrt(in)"},
      "lora_b": {"shape": ["rank", "out"], "init": "zeros"}
    },
    "inputs": {"x": "float [..., in]"},
    "do": ["adapted = matmul(matmul(x, lora_a), lora_b) * (alpha / rank)"],
    "result": "einsum('... in, in out -> ... out', x, weight) + bias + adapted"
  })json");
  json["blocks"]["attention"]["parts"]["c_attn"]["block"] = "adapted";
  return json.dump(2);
}

}  // namespace lora
