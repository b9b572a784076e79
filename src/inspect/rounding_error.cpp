#include "inspect/rounding_error.hpp"

#include "ops/recording/by_name.hpp"

namespace xtape {

namespace {
constexpr std::int64_t sums = sizeof(RoundingSquares) / sizeof(double);
}  // namespace

const Op& rounding_error_op() {
  static const Op entry{.name = "rounding_error",
                        .doc = "The error of a value against float64, and sums of squares.",
                        .inputs = {{"value", Accept::any}, {"local", Accept::any}, {"exact", Accept::any}},
                        .outputs = {"error", "squares"},
                        .shape = [](const OpCall& call) -> std::vector<ValueType> {
                          const std::int64_t pieces = (count_of(call.shape(0)) + rounding_piece - 1) / rounding_piece;
                          return {{Dtype::float32, call.shape(0)}, {Dtype::float64, {pieces, sums}}};
                        },
                        .differentiable = false,
                        .lowering = {.kernel = kernel_by_name}};
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
