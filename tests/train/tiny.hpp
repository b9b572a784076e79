/// A very small model, and files for it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sum_batches.hpp"
#include "xtape/train.hpp"

namespace tiny {

namespace fs = std::filesystem;

/// A temporary directory for a test, removed when the test ends.
class Directory {
 public:
  Directory() {
    static int count = 0;
    path_ = fs::temp_directory_path() / ("xtape_train_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Directory() { fs::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  fs::path path_;
};

/// Predicts the next token from this one and the one before, with dropout.
inline const std::string definition = R"json({
  "xtape": 2,
  "name": "tiny",
  "hyper": {"vocab_size": 13, "width": 16, "rate": 0.2, "slope": 1.0},
  "blocks": {
    "table": {
      "hyper": {"rows": null, "width": null},
      "weights": {"weight": {"shape": ["rows", "width"], "init": "normal", "std": 0.3}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    }
  },
  "model": {
    "modules": {
      "here": {"block": "table", "rows": "vocab_size", "width": "width"},
      "before": {"block": "table", "rows": "vocab_size", "width": "width"},
      "out": {"block": "table", "rows": "vocab_size", "width": "width"}
    },
    "functions": {
      "logits": {
        "inputs": {"tokens": "int [b, t]"},
        "do": ["x = tanh(here(tokens) + before(shift_right(tokens)))"],
        "result": "einsum('btd,vd->btv', dropout(x, rate), out.weight)"
      },
      "loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": ["total, count = cross_entropy(slope * logits(tokens), targets, ignore=-1)"],
        "result": "total, count"
      }
    }
  }
})json";

/// Sums of one digit, for sums.txt: 80 for training, 20 held out.
inline const std::string recipe = R"json({
  "xtape": 2,
  "name": "tiny",
  "definition": "tiny.json",
  "hyper": {"vocab_size": {"from": "vocabulary"}},
  "data": {"kind": "documents", "text": "sums.txt", "separator": "line", "held_out": 20, "prompt_end": "="},
  "batch": {"size": 8},
  "optimizer": {"kind": "adamw", "betas": [0.9, 0.99], "weight_decay": 0.1},
  "schedule": {"kind": "cosine", "rate": 0.05, "final_rate": 0.005, "warmup": 3},
  "steps": 12,
  "clip": 1.0,
  "evaluate_every": 5,
  "measure": ["exact_match"],
  "keep": 2,
  "seed": 4
})json";

/// Writes definition, recipe and sums to the directory, and loads the recipe.
inline xtape::Recipe load(const Directory& directory, const std::vector<xtape::Setting>& settings = {}) {
  directory.write("tiny.json", definition);
  directory.write("sums.txt", sums_text());
  return xtape::Recipe::load(directory.write("recipe.json", recipe), settings);
}

}  // namespace tiny
