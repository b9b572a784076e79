/// Playing logits(source, tokens) on rows of hypotheses that all grow by one token at a time.
#pragma once

#include <memory>
#include <vector>

#include "choices.hpp"
#include "xtape/predict.hpp"

namespace xtape::decode {

class TargetSteps {
 public:
  virtual ~TargetSteps() = default;
  /// `source` is int64 [sentences, s]; each sentence has `repeat` rows, one after the other, that hold nothing yet.
  virtual void begin(const Array& source, std::int64_t repeat) = 0;
  /// Each row grows by its token; the logits of what follows, valid until the next call.
  virtual LogitRows step(const std::vector<std::int32_t>& tokens) = 0;
  /// From now on row i goes on where row rows[i] is now, its sentence included.
  virtual void select(const std::vector<std::int32_t>& rows) = 0;
};

/// By a predictor: one new token a row and step.
std::unique_ptr<TargetSteps> cached_steps(Predictor& predictor);
/// By the model without caches: all tokens again at every step.
std::unique_ptr<TargetSteps> replayed_steps(Model& model);

}  // namespace xtape::decode
