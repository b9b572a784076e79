/// What tests of files of single ops share.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// The ops that ONNX cannot express: random numbers, factorisations of matrices, special functions, shifts of signed
/// integers.
inline const std::set<std::string>& not_written() {
  static const std::set<std::string> names = {"bernoulli",
                                              "beta",
                                              "bitwise_left_shift",
                                              "bitwise_right_shift",
                                              "categorical",
                                              "checked_weights",
                                              "choice",
                                              "cholesky",
                                              "cholesky_solve",
                                              "det",
                                              "det_grad",
                                              "det_grad_grad",
                                              "digamma",
                                              "eigh",
                                              "erfinv",
                                              "exponential",
                                              "gamma",
                                              "gammainc",
                                              "gammaincinv",
                                              "inv",
                                              "laplace",
                                              "lgamma",
                                              "lstsq",
                                              "lu",
                                              "lu_solve",
                                              "matrix_rank",
                                              "multinomial",
                                              "multivariate_normal",
                                              "normal",
                                              "permutation",
                                              "pinv",
                                              "poisson",
                                              "poisson_quantile",
                                              "polygamma",
                                              "qr",
                                              "randint",
                                              "randn",
                                              "randperm",
                                              "slogdet",
                                              "solve",
                                              "svd",
                                              "triangular_solve",
                                              "truncated_normal",
                                              "uniform"};
  return names;
}

/// Inputs of an op that numbers_for does not suit, by name.
inline Store fed_to(const std::string& op, Dtype dtype) {
  const auto floats = [&](const Shape& shape, std::initializer_list<float> numbers) {
    Array array(Dtype::float32, shape);
    for (std::int64_t i = 0; i < array.count(); ++i)
      array.as<float>()[i] = numbers.begin()[i % static_cast<std::int64_t>(numbers.size())];
    return evaluate(cast(Tape().constant(array), dtype));
  };
  const auto integers = [](const Shape& shape, std::int64_t number) {
    Array array(Dtype::int64, shape);
    std::fill_n(array.as<std::int64_t>(), array.count(), number);
    return array;
  };
  Store store;
  if (op == "bucketize" || op == "histogram") store.add("x1", floats({3}, {0.25F, 0.5F, 1}));
  if (op == "nanquantile" || op == "quantile") store.add("x1", floats({3}, {0, 0.25F, 0.75F}));
  if (op == "root_of_squares") {
    store.add("x0", floats({3, 3}, {0, 1, 0}));
    store.add("x1", floats({3}, {1}));
  }
  if (op == "searchsorted") store.add("x0", floats({3, 3}, {0, 0.5F, 1}));
  if (op == "watch") {
    Array yes(Dtype::boolean, {3, 3});
    std::fill_n(yes.as<bool>(), yes.count(), true);
    store.add("x1", std::move(yes));
  }
  if (op == "ctc_loss") {
    store.add("x1", integers({2, 2}, 1));
    store.add("x2", integers({2}, 3));
    store.add("x3", integers({2}, 1));
  }
  return store;
}

}  // namespace xtape
