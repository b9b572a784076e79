/// The cross-entropy of rows of logits with target classes, and its gradient. All arrays are dense.
#pragma once

#include <cstddef>
#include <cstdint>

#include "xtape/attributes.hpp"

namespace xtape {

/// The settings of the cross-entropy. In the target distribution of a row, the target gets the probability 1 -
/// smoothing. The probability `smoothing` is spread evenly over all classes (the target too), or over all classes
/// except `excluded` if `excluded` is >= 0.
struct CrossEntropy {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t ignore = -100;  ///< Rows with this target have no loss.
  double smoothing = 0;
  std::int64_t excluded = -1;

  /// The share of the probability `smoothing` that one class gets.
  double spread() const {
    const std::int64_t over = excluded >= 0 ? classes - 1 : classes;
    return smoothing == 0 || over == 0 ? 0 : smoothing / static_cast<double>(over);
  }
};

/// Reads the attributes of the op cross_entropy.
inline CrossEntropy loss_of(const Attributes& attributes, const Shape& logits) {
  CrossEntropy loss;
  loss.classes = logits.back();
  loss.rows = loss.classes == 0 ? 0 : count_of(logits) / loss.classes;
  loss.ignore = attributes.get<std::int64_t>("ignore");
  loss.smoothing = attributes.get<double>("label_smoothing");
  loss.excluded = attributes.get<std::int64_t>("smoothing_excludes");
  return loss;
}

/// Throws Error if a target is neither a class nor `ignore`. The functions below require checked targets.
template <class Target>
void check_targets(const Target* targets, const CrossEntropy& call);

/// Computes losses[rows] and logsumexp[rows] = log sum exp(logits) of each row (0 for a row of -inf). Both are 0 in
/// ignored rows.
template <class T, class Target>
void row_losses(const T* logits, const Target* targets, const CrossEntropy& call, double* losses, T* logsumexp,
                int threads);

/// sum = the sum of the rows' losses, count = the number of rows that are not ignored.
template <class T, class Target>
void sum_losses(const double* losses, const Target* targets, const CrossEntropy& call, T* sum, std::int64_t* count);

/// dlogits = dsum * (exp(logits - logsumexp) - target distribution), 0 in ignored rows. `dlogits` may be `logits`.
template <class T, class Target>
void cross_entropy_grad(const T* logits, const Target* targets, const T* logsumexp, T dsum, const CrossEntropy& call,
                        T* dlogits, int threads);

}  // namespace xtape
