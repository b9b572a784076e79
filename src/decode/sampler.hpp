/// Draws a token from logits. Applies the temperature, top_k and top_p of a Sampling.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/decode.hpp"

namespace xtape::decode {

// Selects the most probable tokens from rows of logits.

/// Returns the logits. Throws DefinitionError if the result of a step does not consist of floats [rows, tokens,
/// classes].
const ArrayView& checked_logits(const ArrayView& result);

struct ScoredToken {
  std::int32_t token = 0;
  double log_probability = 0;
};

/// Sets choices[i] to the `count` most probable tokens of row rows[i]. `logits` are floats [rows, 1, classes]. The
/// order is by falling probability. If two probabilities are equal, the lower token comes first. Leaves out the tokens
/// `never` and tokens of probability 0, so there may be fewer than `count` choices. Probabilities are the softmax over
/// all classes. Throws Error if the softmax of a row is not defined.
void likeliest(const ArrayView& logits, const std::vector<std::int64_t>& rows, std::int64_t count,
               const std::vector<std::int32_t>& never, int threads, std::vector<std::vector<ScoredToken>>& choices);

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
  bool takes_best(std::int64_t classes) const { return sampling_.top_k > 0 && sampling_.top_k < classes; }
  bool takes_all(std::int64_t classes) const {
    return sampling_.temperature != 0 && !takes_best(classes) && sampling_.top_p >= 1;
  }
  template <class T>
  std::int32_t draw(const T* logits, std::int64_t classes, double share);
  template <class T>
  std::int32_t draw_from_all(const T* logits, std::int64_t classes, double share);
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
  std::vector<double> sums_;     // of the weights up to the end of each block
  std::vector<Candidate> candidates_;
};

}  // namespace xtape::decode
