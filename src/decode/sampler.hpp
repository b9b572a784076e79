/// Drawing from the few tokens, of very many, that a sampling's cuts leave.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/decode.hpp"

namespace xtape::decode {

/// Keeps its working memory from draw to draw. The likeliest are found by the maxima of short stretches, a few passes
/// over the logits; they are never sorted as a whole.
class Sampler {
 public:
  /// Throws Error where an option is out of its range.
  explicit Sampler(const Sampling& sampling);

  struct Candidate {
    std::int32_t token = 0;
    double logit = 0;
    double weight = 0;  ///< Its share of the probability, times the sum of all weights.
  };
  /// The tokens that may be drawn, in the order of their numbers. Throws Error where a logit is NaN or infinity, or
  /// none is finite. T is float or double.
  template <class T>
  const std::vector<Candidate>& weigh(const T* logits, std::int64_t classes);

  /// Draw number `draw` of the random stream `stream`. Logits are a float dtype's, [classes], side by side.
  std::int32_t draw(const ArrayView& logits, std::uint64_t draw, std::uint64_t stream = 0);

 private:
  template <class T>
  void look_at(const T* logits, std::int64_t classes);
  template <class T>
  void take_all(const T* logits, std::int64_t classes);
  template <class T>
  void take_best(const T* logits, std::int64_t classes, std::int64_t count);
  template <class T>
  double weight_of_all(const T* logits, std::int64_t classes) const;
  double weight_of(double logit) const;
  double sum_of_weights() const;
  bool cut_at(double enough);

  Sampling sampling_;
  double top_ = 0;               // the greatest logit
  std::vector<double> maxima_;   // of stretches of logits
  std::vector<double> ordered_;  // the same, partly sorted
  std::vector<Candidate> candidates_;
};

}  // namespace xtape::decode
