/// Gradients of single examples that are products of two factors. Private to grad.
#pragma once

#include <optional>
#include <string>

#include "xtape/tape.hpp"

namespace xtape {

// Reductions of per-example gradients that avoid computing these gradients where this is cheaper. Private to grad.

/// Returns [b]: the squared norm of each example's slice of `x` [b, …].
Var squared_norms(const Var& x);

/// Returns the sum over the examples of weights[b] * x[b]. `x` is [b, …], `weights` is [b].
Var weighted_sum(const Var& x, const Var& weights);

/// A factor of a product: an array and a letter for each of its axes.
struct ExampleFactor {
  Var var;
  std::string letters;
  /// If not 0, `var` has indices. The factor is then their one-hot array, and `classes` is the letter of the additional
  /// axis of classes.
  char classes = 0;

  std::string all_letters() const { return classes == 0 ? letters : letters + classes; }
};

/// An array [b, …] that is a product of two factors, summed over the letters that are not in the result. The first
/// letter of the result is the letter of the examples. A factor that is the same for all examples lacks this letter.
struct ExampleProduct {
  ExampleFactor a, b;
  std::string result;
  Shape shape;  ///< The shape of the result.
};

/// Returns the product that computes `x`: an einsum, or parts that are added to zeros at indices. A transpose may
/// follow. Returns nothing if `x` is not such a product.
std::optional<ExampleProduct> product_of_examples(const Var& x);

/// Returns the predicted time to compute a product. The unit is one multiply-add of a large matrix product.
double cost_of(const ExampleProduct& product);
/// Returns the predicted time of inner_products, or nothing if inner_products does not support the two products.
std::optional<double> cost_of_inner_products(const ExampleProduct& p, const ExampleProduct& q);

/// Returns [b]: for each example, the inner product of two arrays of the same shape. Computes it from the inner
/// products of the rows of their factors.
Var inner_products(const ExampleProduct& p, const ExampleProduct& q);

/// Returns the sum over the examples of weights[b] times the product.
Var weighted_sum_of(const ExampleProduct& product, const Var& weights);

}  // namespace xtape
