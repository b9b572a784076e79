// A determinant by expansion along first rows, without memoisation of minors: about e n! products.
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// Returns the determinants of b matrices a [n, n, b]. The expansion needs the determinants of n b minors.
Var determinants(const Var& a) {
  const std::int64_t n = a.size(0);
  if (n == 1) return reshape(a, {-1});
  if (n == 2) return a.at(0, 0) * a.at(1, 1) - a.at(0, 1) * a.at(1, 0);
  std::vector<std::int32_t> others;  // [n - 1, n]: the columns of each minor
  std::vector<double> signs;
  for (std::int32_t left_out = 0; left_out < n; ++left_out) signs.push_back(left_out % 2 == 0 ? 1 : -1);
  for (std::int32_t column = 0; column < n - 1; ++column)
    for (std::int32_t left_out = 0; left_out < n; ++left_out) others.push_back(column + (column >= left_out ? 1 : 0));
  const Var minors = take(a.at(Slice(1)), a.tape().constant(ArrayView(others, {n - 1, n})), 1);  // [n - 1, n - 1, n, b]
  const Var found = reshape(determinants(reshape(minors, {n - 1, n - 1, -1})), {n, -1});         // [n, b]
  return sum(a.at(0) * a.tape().constant(ArrayView(signs, {n, 1})) * found, 0);
}

Var determinant(const Var& a) {
  return sum(determinants(expand_dims(a, 2)));
}
}  // namespace

Functions det() {
  const auto matrix = [](Input& in) {
    const std::int64_t n = in.number("ell");
    return reshape(in.array("A"), {n, n});
  };
  return {{"primal", [=](Input& in) { return determinant(matrix(in)); }}, {"gradient", [=](Input& in) {
                                                                             const Var a = matrix(in);
                                                                             return reshape(grad(determinant(a), a),
                                                                                            {-1});
                                                                           }}};
}

}  // namespace gradbench
