#include "kernels/math/root_of_squares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads/threads.hpp"
#include "kernels/elements/loops.hpp"
#include "kernels/elements/scalar.hpp"

namespace xtape {

namespace {
/// Loops over the results, with the places of x and of the sums of squares, and loops over the elements of one result.
struct Reduced {
  Loops<2> results;
  Loops<1> elements;
  Reduced(const Layout& x, const Layout& squares, const std::vector<std::int64_t>& axis, bool keepdims) {
    std::vector<bool> reduced(x.shape.size(), axis.empty());
    for (const std::int64_t each : axis) reduced[normal_axis(each, x.shape.size())] = true;
    for (std::size_t i = 0, k = 0; i < x.shape.size(); ++i) {
      if (reduced[i])
        elements.add(x.shape[i], {x.strides[i]});
      else
        results.add(x.shape[i], {x.strides[i], squares.strides[k]});
      if (keepdims || !reduced[i]) ++k;
    }
    results.merge();
    elements.merge();
  }
};

/// A sum, with the rounding errors of its additions.
struct CompensatedSum {
  double sum = 0, lost = 0;
  void add(double x) {
    const double next = sum + x, added = next - sum;
    lost += (sum - (next - added)) + (x - added);
    sum = next;
  }
  double value() const { return std::isfinite(sum) ? sum + lost : sum; }
};

/// The root for numbers that were divided by the power of two above the largest of them.
template <class T>
T scaled_root(const T* x, const Loops<1>& elements, bool centred, double divisor) {
  const std::int64_t count = elements.count();
  const auto for_each = [&](const auto& visit) {
    for (std::int64_t i = 0; i < count; ++i) visit(static_cast<double>(x[elements.offsets(i, elements.rank())[0]]));
  };
  double largest = 0;
  for_each([&](double each) { largest = std::max(largest, std::abs(each)); });
  int power = 0;
  if (std::isfinite(largest)) std::frexp(largest, &power);
  CompensatedSum total, squares;
  if (centred) for_each([&](double each) { total.add(std::ldexp(each, -power)); });
  const auto n = static_cast<double>(count);
  const double mean = total.sum / n;
  // `mean` is rounded, and so are the products of the differences from it.
  const double rest = (std::fma(-mean, n, total.sum) + total.lost) / n;
  for_each([&](double each) {
    const double difference = std::ldexp(each, -power) - mean - rest;
    squares.add(difference * difference);
  });
  return static_cast<T>(std::ldexp(std::sqrt(squares.value() / divisor), power));
}

template <class T>
Kernel make_of(const KernelForm& form) {
  constexpr T least = static_cast<T>(least_exact_sum(dtype_of<T>()));
  const Reduced reduced(form.in[0], form.in[1], form.get<std::vector<std::int64_t>>("axis"),
                        form.get<bool>("keepdims"));
  const bool centred = form.get<bool>("centred");
  const double divisor = form.get<double>("divisor");
  const std::int64_t count = count_of(form.shape(1));
  return Kernel{[=, first = form.in[0].offset, first_sum = form.in[1].offset,
                 threads = form.threads](const KernelArguments& arguments) {
    const T *x = in<T>(arguments, 0) + first, *squares = in<T>(arguments, 1) + first_sum;
    T* y = out<T>(arguments, 0);
    parallel_for(threads, count, std::int64_t{1} << 14, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t i = begin; i < finish; ++i) {
        const auto [at, of_sum] = reduced.results.offsets(i, reduced.results.rank());
        const T sum = squares[of_sum];
        y[i] = sum >= least && sum <= std::numeric_limits<T>::max()
                   ? std::sqrt(sum)
                   : scaled_root(x + at, reduced.elements, centred, divisor);
      }
    });
  }};
}
}  // namespace

Kernel make_root_of_squares(const KernelForm& form) {
  return with_floating(form.dtype(0), [&](auto scalar) { return make_of<decltype(scalar)>(form); });
}

}  // namespace xtape
