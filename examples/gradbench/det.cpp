// A determinant by the expansion along first rows, without remembering minors: about e n! products.
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// Of the matrices a [b, n, n], by their minors, which are b n matrices with one row and column less.
Var determinants(const Var& a) {
  const std::int64_t n = a.size(-1);
  if (n == 1) return reshape(a, {-1});
  std::vector<std::int32_t> others;
  std::vector<double> signs;
  for (std::int32_t left_out = 0; left_out < n; ++left_out) {
    signs.push_back(left_out % 2 == 0 ? 1 : -1);
    for (std::int32_t column = 0; column < n; ++column)
      if (column != left_out) others.push_back(column);
  }
  const Var columns = a.tape().constant(ArrayView(others, {n, n - 1}));
  const Var minors = transpose(take(a.at(all, Slice(1)), columns, 2), {0, 2, 1, 3});            // [b, n, n - 1, n - 1]
  const Var found = reshape(determinants(reshape(minors, {-1, n - 1, n - 1})), {-1, n});        // [b, n]
  return sum(a.at(all, 0) * a.tape().constant(signs) * found, 1);
}

Var determinant(const Var& a) { return sum(determinants(expand_dims(a, 0))); }
}  // namespace

Functions det() {
  const auto matrix = [](Input& in) {
    const std::int64_t n = in.number("ell");
    return reshape(in.array("A"), {n, n});
  };
  return {{"primal", [=](Input& in) { return determinant(matrix(in)); }},
          {"gradient", [=](Input& in) {
             const Var a = matrix(in);
             return reshape(grad(determinant(a), a), {-1});
           }}};
}

}  // namespace gradbench
