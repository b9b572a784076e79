#include <cmath>
#include <limits>
#include <type_traits>

#include "base/threads/threads.hpp"
#include "kernels/elements/loops.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/functions.hpp"

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

/// The root, computed in a type whose range has room for squares of T.
template <class T>
T wide_root(const T* x, const Loops<1>& elements, bool centred, double divisor) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const std::int64_t count = elements.count();
  const auto total = [&](const auto& term) {
    Wide sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += term(static_cast<Wide>(x[elements.offsets(i, elements.rank())[0]]));
    return sum;
  };
  const Wide mean = centred ? total([](Wide each) { return each; }) / static_cast<Wide>(count) : 0;
  const Wide squares = total([mean](Wide each) { return (each - mean) * (each - mean); });
  return static_cast<T>(std::sqrt(squares / static_cast<Wide>(divisor)));
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
                   : wide_root(x + at, reduced.elements, centred, divisor);
      }
    });
  }};
}
}  // namespace

Kernel make_root_of_squares(const KernelForm& form) {
  return with_floating(form.dtype(0), [&](auto scalar) { return make_of<decltype(scalar)>(form); });
}

}  // namespace xtape
