/// Plays logits(source, tokens) on rows of hypotheses that all grow by one token per step.
#pragma once

#include <memory>
#include <vector>

#include "choices.hpp"
#include "xtape/predict.hpp"

namespace xtape::decode {

class TargetSteps {
 public:
  virtual ~TargetSteps() = default;
  /// `source` is int64 [sentences, s]. Each sentence gets `repeat` consecutive rows without tokens.
  virtual void begin(const Array& source, std::int64_t repeat) = 0;
  /// Appends one token to each row, and returns the logits of the next token, valid until the next call.
  virtual LogitRows step(const std::vector<std::int32_t>& tokens) = 0;
  /// Row i continues from the present state of row rows[i], including its sentence.
  virtual void select(const std::vector<std::int32_t>& rows) = 0;
};

/// Uses a predictor, which reads one new token per row and step. Keeps a reference to it.
std::unique_ptr<TargetSteps> cached_steps(Predictor& predictor);
/// Uses the model without caches, which reads all tokens again at every step. Keeps a reference to it.
std::unique_ptr<TargetSteps> replayed_steps(Model& model);

}  // namespace xtape::decode
