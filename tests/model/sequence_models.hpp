/// Two sentences for the models of recurrent_models.hpp, and playing them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "recurrent_models.hpp"
#include "transformer.hpp"

namespace xtape::test::sequences {
using transformer::Rows;
using transformer::Values;

/// Two rows with all that a function of any of the models may take.
struct Given : test::transformer::Example {
  Values h = states(0.7), c = states(1.3);

  static Values states(double scale) {
    Values made = Values::from_shape({2, 2, 6});
    for (std::size_t i = 0; i < made.size(); ++i) made.flat(i) = std::sin(scale * static_cast<double>(i + 1));
    return made;
  }
};

inline ArrayView input_of(const Given& batch, const std::string& input) {
  if (input == "source") return batch.source;
  if (input == "tokens") return batch.tokens;
  if (input == "targets") return batch.targets;
  return input == "h" ? batch.h : batch.c;
}

inline NamedSizes sizes(const Model& model, const std::string& function, const Given& batch) {
  NamedSizes found;
  for (const std::string& size : model.signature(function).sizes) {
    const Rows& rows = size == "s" ? batch.source : batch.tokens;
    found.add(size, static_cast<std::int64_t>(rows.shape()[size == "b" ? 0 : 1]));
  }
  return found;
}

inline std::vector<Values> play(const Model& model, const std::string& function, const Given& batch) {
  std::vector<ArrayView> feeds;
  for (const FunctionInput& input : model.signature(function).inputs) feeds.push_back(input_of(batch, input.name));
  return test::play(model, function, sizes(model, function, batch), feeds);
}

inline Values logits(const Model& model, const Given& batch) {
  return play(model, "logits", batch)[0];
}
}  // namespace xtape::test::sequences
