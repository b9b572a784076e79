/// The losses of rows of logits against target classes, and their gradient.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xtape {

/// The target distribution of a row: 1 - smoothing on its target, the rest spread evenly over all classes, or over all
/// but `excluded` where that is >= 0.
struct CrossEntropy {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t ignore = -100;  ///< Rows of this target have no loss.
  double smoothing = 0;
  std::int64_t excluded = -1;

  double spread() const;  ///< What smoothing puts on one class.
};

/// Throws Error where a target is neither a class nor `ignore`. What is below takes targets that have been checked.
template <class Target>
void check_targets(const Target* targets, const CrossEntropy& call);

/// The losses of the rows, and log sum exp(logits) of every row (0 for a row of -inf); both are 0 in ignored rows.
template <class T, class Target>
void row_losses(const T* logits, const Target* targets, const CrossEntropy& call, double* losses, T* logsumexp,
                int threads);

/// sum = the sum of the rows' losses, count = how many rows were not ignored.
template <class T, class Target>
void sum_losses(const double* losses, const Target* targets, const CrossEntropy& call, T* sum, std::int64_t* count);

/// dlogits = dsum * (exp(logits - logsumexp) - target distribution), zeros in ignored rows. May overwrite the logits.
template <class T, class Target>
void cross_entropy_grad(const T* logits, const Target* targets, const T* logsumexp, T dsum, const CrossEntropy& call,
                        T* dlogits, int threads);

}  // namespace xtape
