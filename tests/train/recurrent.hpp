/// A small recurrent model, and batches of text for it.
#pragma once

#include <cstring>
#include <string>

#include "xtape/train.hpp"

namespace recurrent {

using namespace xtape;

/// Two recurrent layers with carried states.
inline const std::string definition = R"json({
  "xtape": 2,
  "name": "recurrent",
  "hyper": {"vocab_size": 11, "width": 6, "layers": 2, "rate": 0.0},
  "blocks": {
    "table": {
      "hyper": {"rows": null, "width": null},
      "weights": {"weight": {"shape": ["rows", "width"], "init": "normal", "std": 0.8}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    },
    "cell": {
      "hyper": {"width": null},
      "weights": {
        "in": {"shape": ["width", "width"], "init": "normal", "std": 0.6},
        "across": {"shape": ["width", "width"], "init": "normal", "std": 0.6}
      },
      "inputs": ["x", "h"],
      "do": ["h = tanh(matmul(x, in) + matmul(h, across))"],
      "result": "h, h"
    }
  },
  "model": {
    "modules": {
      "in": {"block": "table", "rows": "vocab_size", "width": "width"},
      "cells": {"block": "cell", "repeat": "layers", "width": "width"},
      "out": {"block": "table", "rows": "vocab_size", "width": "width"}
    },
    "functions": {
      "read": {
        "inputs": {"tokens": "int [b, t]", "h": "float [layers, b, width]"},
        "do": [
          "y, low = scan(cells[0], dropout(in(tokens), rate), init=h[0], axis=1)",
          "y, high = scan(cells[1], y, init=h[1], axis=1)"
        ],
        "result": "einsum('btd,vd->btv', y, out.weight), stack(low, high)"
      },
      "loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]", "h": "float [layers, b, width]"},
        "do": [
          "logits, last = read(tokens, h)",
          "total, count = cross_entropy(logits, targets, ignore=-1)"
        ],
        "result": {"total": "total", "count": "count", "h": "last"}
      },
      "plain_loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]", "h": "float [layers, b, width]"},
        "do": ["total, count, h = loss(tokens, targets, h)"],
        "result": "total, count"
      }
    }
  }
})json";

inline std::string with(const std::string& from, const std::string& to, std::string text = definition) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

/// Tokens below 11 with a long period.
inline Tokens babble(std::int32_t count) {
  Tokens tokens;
  for (std::int32_t i = 0; i < count; ++i) tokens.push_back((i * i + 3 * (i / 7)) % 11);
  return tokens;
}

inline TextBatches batches_of(std::int64_t rows, std::int64_t block_size, bool consecutive = true,
                              std::int32_t training = 103, std::int32_t validation = 50) {
  return {babble(training),
          babble(validation),
          {.rows = rows,
           .block_size = block_size,
           .seed = 3,
           .order = consecutive ? TextOrder::consecutive : TextOrder::random}};
}

inline Model model_of(const std::string& rate = "0", const std::string& text = definition) {
  return Model::parse(text, {.hyper = {{"rate", rate}}, .seed = 5}, "recurrent.json");
}

inline TrainerOptions options_of(std::int64_t accumulate = 1, double rate = 0.05) {
  TrainerOptions options;
  options.optimizer.kind = OptimizerOptions::Kind::sgd;
  options.optimizer.weight_decay = 0;
  options.schedule.rate = rate;
  options.accumulate = accumulate;
  options.seed = 9;
  options.threads = 1;
  return options;
}

inline bool same_weights(const Store& a, const Store& b) {
  for (const Store::Entry& entry : a)
    if (std::memcmp(entry.value.data(), b.at(entry.name).data(), entry.value.bytes()) != 0) return false;
  return a.size() == b.size() && a.size() > 0;
}

inline Store copy_of(const Store& store) {
  Store copy;
  for (const Store::Entry& entry : store) copy.add(entry.name, entry.value.clone());
  return copy;
}

}  // namespace recurrent
