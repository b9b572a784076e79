/// Gradients of single examples that are products of two factors. Private to grad.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// A factor of a product: an array and a letter for each of its axes.
struct ExampleFactor {
  Var var;
  std::string letters;
  /// If not 0, `var` has indices, and the factor is their one-hot array, with this letter for the further axis of the
  /// classes.
  char classes = 0;

  std::string all_letters() const { return classes == 0 ? letters : letters + classes; }
};

/// An array [b, …]: the product of two factors, summed over the letters that the result lacks. The first letter of the
/// result is that of the examples; an operand that is the same for all examples lacks it.
struct ExampleProduct {
  ExampleFactor a, b;
  std::string result;
  Shape shape;  ///< The shape of the result.
};

/// The product that computes `x`: an einsum, or what is added to zeros at indices, under a transpose.
std::optional<ExampleProduct> product_of_examples(const Var& x);

/// What computing something takes, in the time of one multiply-add of a large matrix product.
double cost_of(const ExampleProduct& product);
/// That of inner_products; nothing if it does not know how.
std::optional<double> cost_of_inner_products(const ExampleProduct& p, const ExampleProduct& q);

/// The inner products of the examples of two arrays of one shape, from the inner products of the rows of their factors:
/// [b].
Var inner_products(const ExampleProduct& p, const ExampleProduct& q);

/// The sum over the examples of weights[b] times the product.
Var weighted_sum_of(const ExampleProduct& product, const Var& weights);

}  // namespace xtape
