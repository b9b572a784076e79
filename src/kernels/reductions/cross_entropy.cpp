#include "kernels/table/unrolled.hpp"

#include "kernels/reductions/cross_entropy.hpp"

#include <array>
#include <cmath>
#include <string>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/math/vector_math.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::int64_t block =
    2048;  // logits that stay in the first-level cache between computing their maximum and their sum

/// The log of the sum of exponentials of a row. If `with_sum`, also the sum of the row's elements. Reads the row once.
template <bool with_sum, class T>
std::pair<double, double> row_sums(const T* row, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  T shift = lowest;
  double total = 0;
  double plain = 0;
  for (std::int64_t first = 0; first < count; first += block) {
    const T* part = row + first;
    const std::int64_t length = std::min(block, count - first);
    const T largest = max_of_lanes(part, length);
    if (largest > shift) {
      if (total != 0) total *= vector_math::exp(static_cast<double>(shift) - static_cast<double>(largest));
      shift = largest;
    }
    const Batch by(shift == lowest ? T{0} : shift);
    if constexpr (with_sum)
      plain += sum_of_lanes<T>(length, [&](std::int64_t i, const auto& lanes) { return lanes.load(part + i); });
    total += sum_of_lanes<T>(length, [&](std::int64_t i, const auto& lanes) {
      return vector_math::clipped_exp(lanes.load(part + i, lowest) - by);
    });
  }
  if (total == 0) return {0, plain};
  return {(shift == lowest ? 0 : static_cast<double>(shift)) + vector_math::log(total), plain};
}

/// The sum of a row without the class `excluded` (-1: none). `sum` is the sum of the whole row. If `sum` is not finite,
/// for example because the excluded class is masked with -inf, the other elements are added again.
template <class T>
double sum_without(const T* row, std::int64_t count, std::int64_t excluded, double sum) {
  if (excluded < 0) return sum;
  if (std::isfinite(sum)) return sum - static_cast<double>(row[excluded]);
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += i == excluded ? 0 : static_cast<double>(row[i]);
  return total;
}

/// The sum of `values`, in blocks of 64.
double sum_of(const double* values, std::int64_t count) {
  double total = 0;
  for (std::int64_t first = 0; first < count; first += 64) {
    double part = 0;
    for (std::int64_t i = first; i < std::min(count, first + 64); ++i) part += values[i];
    total += part;
  }
  return total;
}
}  // namespace

template <class Target>
void check_targets(const Target* targets, const CrossEntropy& call) {
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const std::int64_t target = targets[r];
    if ((target < 0 || target >= call.classes) && target != call.ignore)
      throw Error("cross_entropy: target " + std::to_string(target) + " (element " + std::to_string(r) +
                  ") is neither in [0, " + std::to_string(call.classes) + "), the classes of the logits, nor " +
                  std::to_string(call.ignore) + ", the ignored one");
  }
}

template <class T, class Target>
void row_losses(const T* logits, const Target* targets, const CrossEntropy& call, double* losses, T* logsumexp,
                int threads) {
  const double spread = call.spread();
  parallel_for(threads, call.rows, rows_a_piece(call.classes), [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t r = begin; r < finish; ++r) {
      const T* row = logits + r * call.classes;
      if (targets[r] == call.ignore) {
        losses[r] = 0;
        logsumexp[r] = 0;
        continue;
      }
      const auto [log_total, plain] =
          spread == 0 ? row_sums<false>(row, call.classes) : row_sums<true>(row, call.classes);
      logsumexp[r] = static_cast<T>(log_total);
      // The target distribution sums to 1, so the coefficient of logsumexp is 1.
      double loss = log_total - (1 - call.smoothing) * static_cast<double>(row[targets[r]]);
      if (spread != 0) loss -= spread * sum_without(row, call.classes, call.excluded, plain);
      losses[r] = loss;
    }
  });
}

template <class T, class Target>
void sum_losses(const double* losses, const Target* targets, const CrossEntropy& call, T* sum, std::int64_t* count) {
  *sum = static_cast<T>(sum_of(losses, call.rows));
  *count = 0;
  for (std::int64_t r = 0; r < call.rows; ++r) *count += targets[r] != call.ignore;
}

template <class T, class Target>
void cross_entropy_grad(const T* logits, const Target* targets, const T* logsumexp, T dsum, const CrossEntropy& call,
                        T* dlogits, int threads) {
  using Batch = xsimd::batch<T>;
  const T spread = static_cast<T>(call.spread());
  const T on_target = static_cast<T>(1 - call.smoothing);
  parallel_for(threads, call.rows, rows_a_piece(call.classes), [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t r = begin; r < finish; ++r) {
      T* out = dlogits + r * call.classes;
      if (targets[r] == call.ignore) {
        std::fill_n(out, call.classes, T{});
        continue;
      }
      const T* row = logits + r * call.classes;
      const Batch shift(logsumexp[r]);
      const Batch scale(dsum);
      const Batch less(spread);
      for_lanes<T>(call.classes, [&](std::int64_t i, const auto& lanes) {
        lanes.store(out + i, (vector_math::clipped_exp(lanes.load(row + i) - shift) - less) * scale);
      });
      out[targets[r]] -= on_target * dsum;
      if (call.excluded >= 0) out[call.excluded] += spread * dsum;
    }
  });
}

#define XTAPE_CROSS_ENTROPY(T, Target)                                                            \
  template void row_losses(const T*, const Target*, const CrossEntropy&, double*, T*, int);       \
  template void sum_losses(const double*, const Target*, const CrossEntropy&, T*, std::int64_t*); \
  template void cross_entropy_grad(const T*, const Target*, const T*, T, const CrossEntropy&, T*, int);
XTAPE_CROSS_ENTROPY(float, std::int32_t)
XTAPE_CROSS_ENTROPY(float, std::int64_t)
XTAPE_CROSS_ENTROPY(double, std::int32_t)
XTAPE_CROSS_ENTROPY(double, std::int64_t)
#undef XTAPE_CROSS_ENTROPY
template void check_targets(const std::int32_t*, const CrossEntropy&);
template void check_targets(const std::int64_t*, const CrossEntropy&);

namespace {
/// Calls make(T{}, Target{}, loss) with the C++ types of the logits and the targets.
template <class Make>
Kernel with_loss(const KernelForm& form, const Make& make) {
  const CrossEntropy loss = loss_of(form.attributes, form.shape(0));
  return with_floating(form.dtype(0), [&](auto scalar) {
    return with_index(form.dtype(1), [&](auto target) { return make(scalar, target, loss); });
  });
}

Kernel make_cross_entropy(const KernelForm& form) {
  return with_loss(form, [&]<class T, class Target>(T, Target, const CrossEntropy& loss) {
    return Kernel{[loss, threads = form.threads](const KernelArguments& arguments) {
                    const auto* targets = in<Target>(arguments, 1);
                    auto* losses = static_cast<double*>(arguments.scratch);
                    check_targets(targets, loss);
                    row_losses(in<T>(arguments, 0), targets, loss, losses, out<T>(arguments, 2), threads);
                    sum_losses(losses, targets, loss, out<T>(arguments, 0), out<std::int64_t>(arguments, 1));
                  },
                  static_cast<std::size_t>(loss.rows) * sizeof(double)};
  });
}

Kernel make_cross_entropy_grad(const KernelForm& form) {
  return with_loss(form, [&]<class T, class Target>(T, Target, const CrossEntropy& loss) {
    return Kernel{[loss, threads = form.threads](const KernelArguments& arguments) {
      const auto* targets = in<Target>(arguments, 1);
      check_targets(targets, loss);
      cross_entropy_grad(in<T>(arguments, 0), targets, in<T>(arguments, 2), *in<T>(arguments, 3), loss,
                         out<T>(arguments, 0), threads);
    }};
  });
}
}  // namespace

KernelList list_cross_entropy() {
  return {{"cross_entropy", make_cross_entropy}, {"cross_entropy_grad", make_cross_entropy_grad}};
}

}  // namespace xtape
