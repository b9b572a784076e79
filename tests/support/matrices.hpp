/// Matrices for tests of linear algebra.
#pragma once

#include <string>

#include "played.hpp"

namespace xtape::tests {

/// Returns a[…, i, j] times b[…, j, k] by loops. If `b_turned`, b is [..., k, j].
inline Doubles product(const Doubles& a, const Doubles& b, bool b_turned = false) {
  Shape shape = shape_of(a);
  const std::int64_t inner = shape.back(), rank = static_cast<std::int64_t>(shape.size());
  shape.back() = b_turned ? shape_of(b)[shape.size() - 2] : shape_of(b).back();
  return made_from(shape, [&](const Shape& i) {
    double sum = 0;
    Shape in_a = i, in_b = i;
    for (std::int64_t k = 0; k < inner; ++k) {
      in_a.back() = k;
      in_b[static_cast<std::size_t>(rank - 2)] = b_turned ? i.back() : k;
      in_b.back() = b_turned ? k : i.back();
      sum += element(a, in_a) * element(b, in_b);
    }
    return sum;
  });
}

/// Returns symmetric positive definite matrices with distinct eigenvalues.
inline Doubles positive(const Shape& shape) {
  const Doubles x = numbers(shape, 11);
  return made_from(shape, [&](const Shape& i) {
    Shape j = i;
    std::swap(j.back(), j[j.size() - 2]);
    const double mean = (element(x, i) + element(x, j)) / 2;
    return i.back() == i[i.size() - 2] ? mean + 3 + 2 * static_cast<double>(i.back()) : mean;
  });
}

/// Returns the text of the error that a play of `record` at x throws, or "" if there is none.
inline std::string message_of(const std::function<Var(const Vars&)>& record, const Doubles& x) {
  Tape tape;
  const Var input = tape.input("x", shape_of(x), Dtype::float64);
  Player player(tape, {record({input})});
  try {
    player.play({{input, x}}, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace xtape::tests
