// Cumulative sums along an axis of a dense array.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
/// A sum whose rounding errors do not accumulate. float32 is summed in double. float64 uses compensated summation
/// (Neumaier, 1974). Integers wrap.
template <class T>
class LongSum {
 public:
  T add(T x) {
    if constexpr (std::is_same_v<T, double>) {
      const double next = sum_ + x;
      lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
      sum_ = next;
      // If the sum is infinite, the compensation is NaN and is not added.
      return std::abs(next) <= std::numeric_limits<double>::max() ? next + lost_ : next;
    } else {
      sum_ = wrapping_sum(sum_, static_cast<Sum>(x));
      return static_cast<T>(sum_);
    }
  }

 private:
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  Sum sum_ = 0;
  double lost_ = 0;
};

Kernel make_cumsum(const KernelForm& form) {
  const Middle extent = Middle::around(form.shape(0), form.get<std::int64_t>("axis"));
  const bool reverse = form.get<bool>("reverse");
  return with_scalar(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    using Out = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
    return Kernel{[extent, reverse, threads = form.threads](const KernelArguments& arguments) {
      const T* from = in<T>(arguments, 0);
      Out* to = out<Out>(arguments, 0);
      const std::int64_t size = extent.size, inner = extent.inner;
      const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(1, size));
      const std::int64_t step = reverse ? -inner : inner;
      const std::int64_t start = reverse ? (size - 1) * inner : 0;
      parallel_for(threads, extent.outer * inner, grain, [=](std::int64_t begin, std::int64_t finish) {
        std::int64_t column = begin % inner, slab = begin / inner * size * inner + start;
        for (std::int64_t unit = begin; unit < finish; ++unit) {
          const std::int64_t first = slab + column;
          LongSum<Out> sum;
          for (std::int64_t i = 0; i < size; ++i)
            to[first + i * step] = sum.add(static_cast<Out>(from[first + i * step]));
          if (++column < inner) continue;
          column = 0;
          slab += size * inner;
        }
      });
    }};
  });
}
}  // namespace

KernelList list_cumsum() {
  return {{"cumsum", make_cumsum}};
}

}  // namespace xtape
