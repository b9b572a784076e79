/// Draws a token from logits. Applies the temperature, top_k and top_p of a Sampling.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/decode.hpp"

namespace xtape::decode {

/// Keeps its working memory between draws. Finds the most probable tokens from the maxima of short blocks of logits, in
/// a few passes over the logits. Never sorts all logits.
class Sampler {
 public:
  /// Throws Error if an option is out of range.
  explicit Sampler(const Sampling& sampling);

  struct Candidate {
    std::int32_t token = 0;
    double logit = 0;
    double weight = 0;  ///< Proportional to the probability of the token.
  };
  /// Returns the tokens that may be drawn, in increasing order of `token`. The result is valid until the next call.
  /// Throws Error if a logit is NaN or plus infinity, or if no logit is finite. T is float or double.
  template <class T>
  const std::vector<Candidate>& weigh(const T* logits, std::int64_t classes);

  /// Draws a token with the random step `draw` of the random stream `stream`. `logits` are contiguous, [classes], of a
  /// float dtype. Throws Error as `weigh` does.
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
  double top_ = 0;               // the largest logit
  std::vector<double> maxima_;   // the maxima of blocks of logits
  std::vector<double> ordered_;  // the maxima, partly sorted
  std::vector<Candidate> candidates_;
};

}  // namespace xtape::decode
