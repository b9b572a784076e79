// Reduces per-example gradients through the nodes that compute them.
#include <optional>
#include <string>
#include <vector>

#include "grad/example_products.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// If a gradient is the sum of more contributions than this, the contributions are added first, because there would be
/// too many pairs of contributions.
constexpr std::size_t most_parts = 8;

/// A contribution to a sum: scale[b] * value[b].
struct Part {
  Var value;
  Var scale;  ///< [b] or of rank 0; an empty var means 1
};

Var multiplied(const Var& a, const Var& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  return a * b;
}

/// Returns `s` as one factor per example of `x`: [b] or of rank 0. The var is empty if `s` varies within an example.
Var scale_of_examples(const Var& s, const Var& x) {
  if (s.type() == x.type() && x.rank() > 1) return Var();
  if (s.rank() > 0 && s.rank() == x.rank() && count_of(s.shape()) == s.shape()[0]) return reshape(s, {s.shape()[0]});
  return count_of(s.shape()) == 1 ? reshape(s, {}) : Var();
}

/// Returns the value whose elements `x` rearranges within each example, or an empty var if there is none.
Var before_rearranging(const Var& x) {
  const Node& node = x.node();
  const std::string& name = node.op->name;
  if (name != "reshape" && name != "expand_dims" && name != "squeeze" && name != "transpose") return Var();
  const Var input = x.tape().var(node.inputs[0]);
  if (input.rank() == 0 || x.rank() == 0 || input.shape()[0] != x.shape()[0]) return Var();
  if (name != "transpose") return input;
  const Axes& axes = node.attributes.get<std::vector<std::int64_t>>("axes");
  return !axes.empty() && normal_axis(axes[0], x.rank()) == 0 ? input : Var();
}

/// Returns the terms whose sum is `x`, or only `x` if there are more than `most_parts` terms.
std::vector<Part> parts_of(const Var& x) {
  std::vector<Part> open{{x, Var()}}, found;
  while (!open.empty()) {
    const Part part = open.back();
    open.pop_back();
    const Node& node = part.value.node();
    const std::string& name = node.op->name;
    Vars inputs;
    for (const ValueId& id : node.inputs) inputs.push_back(x.tape().var(id));
    const auto is_whole = [&](std::size_t i) { return inputs[i].type() == x.type(); };
    if (name == "add" && is_whole(0) && is_whole(1)) {
      for (const std::size_t i : {1, 0}) open.push_back({inputs[i], part.scale});
    } else {
      std::optional<Part> inner;
      for (const std::size_t i : {0, 1}) {
        if (name != "mul" || inner || !is_whole(i)) continue;
        const Var scale = scale_of_examples(inputs[1 - i], x);
        if (!scale.empty()) inner = {inputs[i], multiplied(scale, part.scale)};
      }
      if (inner)
        open.push_back(*inner);
      else
        found.push_back(part);
    }
    if (open.size() + found.size() > most_parts) return {{x, Var()}};
  }
  return found;
}

/// Returns the parts as products. Returns an empty list if a part is not a product, or if computing the inner products
/// of all pairs takes longer than adding the parts.
std::vector<ExampleProduct> cheap_products(const std::vector<Part>& parts) {
  std::vector<ExampleProduct> products;
  double whole = 0, inner = 0;
  for (const Part& part : parts) {
    const std::optional<ExampleProduct> product = product_of_examples(part.value);
    if (!product) return {};
    whole += cost_of(*product);
    products.push_back(*product);
    for (const ExampleProduct& earlier : products) {
      const std::optional<double> cost = cost_of_inner_products(earlier, *product);
      if (!cost) return {};
      inner += *cost;
    }
  }
  return inner < whole ? products : std::vector<ExampleProduct>{};
}

/// Returns the labels of an array [b, …]. The first label belongs to the axis of examples.
std::string labels(const Var& x) {
  return std::string("abcdefghijklmnop").substr(0, x.rank());
}
}  // namespace

Var squared_norms(const Var& x) {
  if (const Var inner = before_rearranging(x); !inner.empty() && !product_of_examples(x)) return squared_norms(inner);
  const std::vector<Part> parts = parts_of(x);
  const std::vector<ExampleProduct> products = cheap_products(parts);
  if (products.empty()) {
    if (parts.size() > 1 || parts[0].scale.empty()) return einsum(labels(x) + "," + labels(x) + "->a", x, x);
    return squared_norms(parts[0].value) * square(parts[0].scale);
  }
  Var total;
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      Var term = multiplied(inner_products(products[j], products[i]), multiplied(parts[i].scale, parts[j].scale));
      if (j < i) term = term * 2;
      total = total.empty() ? term : total + term;
    }
  return total;
}

Var weighted_sum(const Var& x, const Var& weights) {
  if (const std::optional<ExampleProduct> product = product_of_examples(x)) return weighted_sum_of(*product, weights);
  if (const Var inner = before_rearranging(x); !inner.empty()) {
    const Var sum = weighted_sum(inner, weights);
    Shape shape = x.shape();
    shape.erase(0);
    if (x.node().op->name != "transpose") return reshape(sum, shape);
    Axes axes;
    for (const std::int64_t axis : x.node().attributes.get<std::vector<std::int64_t>>("axes"))
      axes.push_back(static_cast<std::int64_t>(normal_axis(axis, x.rank())) - 1);
    axes.erase(axes.begin());
    return transpose(sum, axes);
  }
  const std::vector<Part> parts = parts_of(x);
  if (parts.size() == 1 && parts[0].scale.empty())
    return einsum("a," + labels(x) + "->" + labels(x).substr(1), weights, x);
  Var total;
  for (const Part& part : parts) {
    const Var term = weighted_sum(part.value, multiplied(weights, part.scale));
    total = total.empty() ? term : total + term;
  }
  return total;
}

}  // namespace xtape
