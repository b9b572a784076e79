#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/elements/scalar.hpp"
#include "kernels/random/draws.hpp"
#include "xtape/literal.hpp"

namespace xtape {

namespace {
/// The index of the row with this number, for errors: " of row (1, 2)", or nothing if there is only one row.
std::string of_row(std::int64_t row, const Shape& rows) {
  if (rows.empty()) return "";
  Shape index = rows;
  for (std::size_t axis = rows.size(); axis-- > 0; row /= rows[axis]) index[axis] = row % rows[axis];
  return " of row " + to_string(index);
}

/// Throws Error if a row of n weights is no distribution.
void check_weights(const double* weights, std::int64_t n, const Shape& rows) {
  for (std::int64_t row = 0; row < count_of(rows); ++row, weights += n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += weights[i];
      if (!(weights[i] >= 0) || std::isinf(weights[i]))
        throw Error("weight " + std::to_string(i) + of_row(row, rows) + " is " + to_string(Literal(weights[i])) +
                    ": weights must be finite and not negative");
    }
    if (!(sum > 0) || std::isinf(sum))
      throw Error("the weights" + of_row(row, rows) + " sum to " + to_string(Literal(sum)) +
                  ": the sum must be positive and finite");
  }
}
}  // namespace

void refuse_logits(std::int64_t row, const Shape& rows) {
  throw Error("the logits" + of_row(row, rows) + " contain NaN or inf");
}

Kernel make_checked_weights(const KernelForm& form) {
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    const std::int64_t n = form.shape(0).back();
    Shape rows = form.shape(0);
    rows.erase(rows.size() - 1);
    return Kernel{[n, rows](const KernelArguments& arguments) {
      auto* to = out<double>(arguments, 0);
      std::copy_n(in<T>(arguments, 0), n * count_of(rows), to);
      check_weights(to, n, rows);
    }};
  });
}

}  // namespace xtape
