#include "rounding_error.hpp"

#include <algorithm>

#include "kernels.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t piece = 1 << 14;  // elements; sums are by pieces, so that threads do not change them
constexpr std::int64_t sums = sizeof(RoundingSquares) / sizeof(double);
template <class T>
Kernel kernel_for(std::int64_t count, std::int64_t pieces, int threads) {
  const auto compare = kernels().of<T>().compare_rounded;
  return {[=](const KernelArguments& arguments) {
    const auto* value = static_cast<const T*>(arguments.in[0]);
    const auto* local = static_cast<const double*>(arguments.in[1]);
    const auto* exact = static_cast<const double*>(arguments.in[2]);
    auto* error = static_cast<float*>(arguments.out[0]);
    auto* squares = static_cast<RoundingSquares*>(arguments.out[1]);
    parallel_for(threads, pieces, 1, [=](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t p = begin; p < finish; ++p) {
        const std::int64_t at = p * piece;
        squares[p] = compare(value + at, local + at, exact + at, error + at, std::min(piece, count - at));
      }
    });
  }};
}
}  // namespace

const Op& rounding_error_op() {
  static const Op entry{.name = "rounding_error",
                        .doc = "The error of a value against float64, and sums of squares.",
                        .inputs = {{"value", Accept::any}, {"local", Accept::any}, {"exact", Accept::any}},
                        .outputs = {"error", "squares"},
                        .shape = [](const Call& call) -> std::vector<ValueType> {
                          const std::int64_t pieces = (count_of(call.shape(0)) + piece - 1) / piece;
                          return {{Dtype::float32, call.shape(0)}, {Dtype::float64, {pieces, sums}}};
                        },
                        .differentiable = false,
                        .lowering = {.kernel = [](const KernelCall& call) {
                          const std::int64_t count = count_of(call.shape(0)), pieces = call.outputs[1].shape[0];
                          return call.dtype(0) == Dtype::float64 ? kernel_for<double>(count, pieces, call.threads)
                                                                 : kernel_for<float>(count, pieces, call.threads);
                        }}};
  return entry;
}

RoundingSquares sum_of(const ArrayView& squares) {
  RoundingSquares sum;
  const double* numbers = squares.as<double>();
  for (std::int64_t p = 0; p < squares.shape()[0]; ++p, numbers += sums) {
    sum.values += numbers[0];
    sum.made += numbers[1];
    sum.inherited += numbers[2];
    sum.total += numbers[3];
    sum.overflows += numbers[4];
  }
  return sum;
}

}  // namespace xtape
