#include "grad/example_products.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/messages/wording.hpp"
#include "ops/linear_algebra/equation.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/shapes/creation.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Writing and reading an element takes as long as this many multiply-adds of a large product.
constexpr double traffic = 100;

const std::string alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Returns a letter that is not in `used`, and adds the letter to `used`.
char fresh(std::string& used) {
  const char letter = alphabet.at(alphabet.find_first_not_of(used));
  used += letter;
  return letter;
}

std::string united(const std::string& a, const std::string& b) {
  std::string all;
  for (const char letter : a + b)
    if (!contains(all, letter)) all += letter;
  return all;
}

Vars inputs_of(const Var& x) {
  Vars inputs;
  for (const ValueId& id : x.node().inputs) inputs.push_back(x.tape().var(id));
  return inputs;
}

/// Returns the value that `x` broadcasts, or `x` itself if `x` is not a broadcast.
Var before_broadcast(const Var& x) {
  return x.node().op->name == "broadcast_to" ? inputs_of(x)[0] : x;
}

std::optional<ExampleProduct> of_einsum(const Var& x) {
  const Vars inputs = inputs_of(x);
  const Equation e =
      parse_equation(x.node().attributes.get<std::string>("equation"), {inputs[0].shape(), inputs[1].shape()});
  if (e.result.empty()) return {};
  return ExampleProduct{{inputs[0], e.operands[0]}, {inputs[1], e.operands[1]}, e.result, x.shape()};
}

/// Returns the product that an index_add computes. All examples add their parts at the same indices.
std::optional<ExampleProduct> of_index_add(const Var& x, const Vars& inputs, std::size_t axis) {
  const std::string result = alphabet.substr(0, x.rank());
  const std::string rows = alphabet.substr(x.rank(), inputs[1].rank());
  return ExampleProduct{{inputs[1], rows, result[axis]},
                        {inputs[2], result.substr(0, axis) + rows + result.substr(axis + 1)},
                        result,
                        x.shape()};
}

/// Returns the product that a scatter_add computes if it has the form that vmap gives index_add: the indices vary only
/// along the examples and `axis`.
std::optional<ExampleProduct> of_scatter_add(const Var& x, const Vars& inputs, std::size_t axis) {
  const Var indices = before_broadcast(inputs[1]);
  if (indices.rank() != x.rank()) return {};
  for (std::size_t i = 1; i < x.rank(); ++i)
    if (i != axis && indices.shape()[i] != 1) return {};
  if (indices.shape()[0] != x.shape()[0]) return {};
  const std::string result = alphabet.substr(0, x.rank());
  const char row = alphabet[x.rank()];
  std::string part = result;
  part[axis] = row;
  return ExampleProduct{
      {reshape(indices, {indices.shape()[0], indices.shape()[axis]}), std::string{result[0], row}, result[axis]},
      {inputs[2], part},
      result,
      x.shape()};
}

using Sizes = std::unordered_map<char, std::int64_t>;

Sizes sizes_of(const ExampleProduct& p) {
  Sizes sizes;
  for (const ExampleFactor* factor : {&p.a, &p.b})
    for (std::size_t i = 0; i < factor->letters.size(); ++i) sizes[factor->letters[i]] = factor->var.shape()[i];
  for (std::size_t i = 0; i < p.result.size(); ++i) sizes[p.result[i]] = p.shape[i];
  return sizes;
}

double elements(const std::string& letters, const Sizes& sizes) {
  double count = 1;
  for (const char letter : letters) count *= static_cast<double>(sizes.at(letter));
  return count;
}

/// Two products with results of the same shape. They share the letters of the result and no other letters. The factors
/// p.a and q.a match each other, and the factors p.b and q.b match each other.
struct Pair {
  ExampleProduct p, q;
  Sizes sizes;
};

std::optional<Pair> paired(const ExampleProduct& p, const ExampleProduct& q) {
  std::string used = united(p.a.all_letters(), p.b.all_letters());
  std::unordered_map<char, char> renamed;
  for (std::size_t i = 0; i < q.result.size(); ++i) renamed[q.result[i]] = p.result[i];
  const std::string of_q = united(q.a.all_letters(), q.b.all_letters());
  if (used.size() + of_q.size() > alphabet.size()) return {};
  for (const char letter : of_q)
    if (renamed.count(letter) == 0) renamed[letter] = fresh(used);
  const auto rename = [&](ExampleFactor factor) {
    for (char& letter : factor.letters) letter = renamed.at(letter);
    if (factor.classes != 0) factor.classes = renamed.at(factor.classes);
    return factor;
  };
  Pair pair{p, {rename(q.a), rename(q.b), p.result, q.shape}, {}};
  // Matches the factors that share letters of the result.
  const auto shared = [&](const ExampleFactor& one, const ExampleFactor& other) {
    const std::string letters = other.all_letters();
    return std::count_if(p.result.begin() + 1, p.result.end(),
                         [&](char letter) { return contains(one.all_letters(), letter) && contains(letters, letter); });
  };
  if (shared(pair.p.a, pair.q.a) + shared(pair.p.b, pair.q.b) < shared(pair.p.a, pair.q.b) + shared(pair.p.b, pair.q.a))
    std::swap(pair.q.a, pair.q.b);
  pair.sizes = sizes_of(pair.p);
  pair.sizes.merge(sizes_of(pair.q));
  return pair;
}

/// Returns the letters of the inner products of the rows of two factors: the letters of either factor that are in
/// `needed`.
std::string gram_letters(const ExampleFactor& one, const ExampleFactor& other, const std::string& needed) {
  std::string kept;
  for (const char letter : united(one.all_letters(), other.all_letters()))
    if (contains(needed, letter)) kept += letter;
  return kept;
}

/// Returns whether the inner products of the rows can be computed. If a factor is one-hot, the inner product must sum
/// over its classes, and the other factor must have an axis for them.
bool has_gram(const ExampleFactor& one, const ExampleFactor& other, const std::string& needed) {
  const auto fits = [&](const ExampleFactor& hot, const ExampleFactor& partner) {
    return hot.classes == 0 || (contains(partner.all_letters(), hot.classes) && !contains(needed, hot.classes));
  };
  return fits(one, other) && fits(other, one) && gram_letters(one, other, needed).size() <= Shape::max_rank;
}

/// Returns `x` with its axes in the order of `wanted`. Axes that `x` lacks get size 1.
Var aligned(const Var& x, const std::string& letters, const std::string& wanted) {
  Axes order;
  Shape shape;
  for (const char letter : wanted) {
    const std::size_t at = letters.find(letter);
    shape.push_back(at == std::string::npos ? 1 : x.shape()[at]);
    if (at != std::string::npos) order.push_back(static_cast<std::int64_t>(at));
  }
  return reshape(transpose(x, order), shape);
}

/// Selects rows of `dense` along its axis of classes with the indices of `hot`. Returns the rows and their letters.
ExampleFactor chosen(const ExampleFactor& hot, const ExampleFactor& dense, char examples) {
  const std::size_t at = dense.letters.find(hot.classes);
  if (!contains(hot.letters, examples) || !contains(dense.letters, examples)) {
    const std::string letters = dense.letters.substr(0, at) + hot.letters + dense.letters.substr(at + 1);
    return {take(dense.var, hot.var, static_cast<std::int64_t>(at)), letters};
  }
  std::string own, rows;
  for (const char letter : dense.letters)
    if (letter != examples && letter != hot.classes) own += letter;
  for (const char letter : hot.letters)
    if (letter != examples) rows += letter;
  const Var classes_last = aligned(dense.var, dense.letters, examples + own + hot.classes);
  const Var examples_first = aligned(hot.var, hot.letters, examples + rows);
  Shape narrow = Shape::filled(own.size() + 2, 1), wide = classes_last.shape(), full = wide;
  narrow[0] = wide[0];
  narrow[own.size() + 1] = wide[own.size() + 1] = count_of(examples_first.shape()) / std::max<std::int64_t>(1, wide[0]);
  const Var indices = broadcast_to(reshape(examples_first, narrow), wide);
  full.erase(own.size() + 1);
  for (std::size_t i = 1; i < examples_first.rank(); ++i) full.push_back(examples_first.shape()[i]);
  return {reshape(gather(classes_last, -1, indices), full), examples + own + rows};
}

/// Returns the inner products of the rows of two factors. `kept` contains the letters of their axes (gram_letters).
Var gram(const ExampleFactor& one, const ExampleFactor& other, const std::string& kept, char examples, Dtype dtype) {
  if (one.classes != 0 && other.classes != 0)
    return cast(aligned(one.var, one.letters, kept) == aligned(other.var, other.letters, kept), dtype);
  if (one.classes == 0 && other.classes == 0)
    return einsum(one.letters + "," + other.letters + "->" + kept, one.var, other.var);
  const ExampleFactor rows = one.classes != 0 ? chosen(one, other, examples) : chosen(other, one, examples);
  return einsum(rows.letters + "->" + kept, rows.var);
}
}  // namespace

std::optional<ExampleProduct> product_of_examples(const Var& x) {
  const Node& node = x.node();
  const std::string& name = node.op->name;
  if (name == "einsum") return of_einsum(x);
  const Vars inputs = inputs_of(x);
  if (name == "transpose") {
    std::vector<std::size_t> order;
    for (const std::int64_t axis : node.attributes.get<std::vector<std::int64_t>>("axes"))
      order.push_back(normal_axis(axis, x.rank()));
    if (order.empty() || order[0] != 0) return {};
    std::optional<ExampleProduct> product = product_of_examples(inputs[0]);
    if (!product) return {};
    const std::string letters = product->result;
    for (std::size_t i = 0; i < order.size(); ++i) product->result[i] = letters[order[i]];
    product->shape = x.shape();
    return product;
  }
  if ((name != "index_add" && name != "scatter_add") || before_broadcast(inputs[0]).node().op != &zeros_op()) return {};
  const std::size_t axis = normal_axis(node.attributes.get<std::int64_t>("axis"), x.rank());
  if (axis == 0 || x.rank() + inputs[1].rank() > alphabet.size()) return {};
  return name == "index_add" ? of_index_add(x, inputs, axis) : of_scatter_add(x, inputs, axis);
}

double cost_of(const ExampleProduct& p) {
  const Sizes sizes = sizes_of(p);
  double cost = elements(p.result, sizes) * traffic;
  for (const ExampleFactor* part : {&p.a, &p.b})  // the values that are added at the indices of the other factor
    if (const ExampleFactor& hot = part == &p.a ? p.b : p.a; hot.classes != 0)
      return cost + elements(part->letters, sizes) * traffic;
  return cost + elements(united(p.a.letters, p.b.letters), sizes);
}

std::optional<double> cost_of_inner_products(const ExampleProduct& p, const ExampleProduct& q) {
  const std::optional<Pair> pair = paired(p, q);
  if (!pair) return {};
  const char examples = p.result[0];
  double cost = 0;
  for (const bool first : {true, false}) {
    const ExampleFactor &one = first ? pair->p.a : pair->p.b, &other = first ? pair->q.a : pair->q.b;
    const std::string needed = first ? pair->p.b.all_letters() + pair->q.b.all_letters() + examples
                                     : pair->p.a.all_letters() + pair->q.a.all_letters() + examples;
    if (!has_gram(one, other, needed)) return {};
    const std::string kept = gram_letters(one, other, needed);
    const bool is_product = one.classes == 0 && other.classes == 0;
    cost += elements(kept, pair->sizes) * traffic;
    if (is_product) cost += elements(united(one.letters, other.letters), pair->sizes);
  }
  return cost;
}

Var inner_products(const ExampleProduct& p, const ExampleProduct& q) {
  const Pair pair = paired(p, q).value();
  const char examples = p.result[0];
  const std::string of_a = pair.p.a.all_letters() + pair.q.a.all_letters();
  const std::string of_b = pair.p.b.all_letters() + pair.q.b.all_letters();
  const std::string kept_a = gram_letters(pair.p.a, pair.q.a, of_b + examples);
  const std::string kept_b = gram_letters(pair.p.b, pair.q.b, of_a + examples);
  const Dtype dtype = p.a.classes != 0 ? p.b.var.dtype() : p.a.var.dtype();
  const Var a = gram(pair.p.a, pair.q.a, kept_a, examples, dtype);
  const Var b = gram(pair.p.b, pair.q.b, kept_b, examples, dtype);
  return einsum(kept_a + "," + kept_b + "->" + examples, a, b);
}

Var weighted_sum_of(const ExampleProduct& product, const Var& weights) {
  const char examples = product.result[0];
  const std::string result = product.result.substr(1);
  const auto weighted = [&](const ExampleFactor& factor) {
    return factor.var * aligned(weights, std::string{examples}, factor.letters);
  };
  const auto can_scale = [&](const ExampleFactor& factor) {
    return factor.classes == 0 && contains(factor.letters, examples);
  };
  ExampleFactor a = product.a, b = product.b;
  const bool scales_a = can_scale(a) && (!can_scale(b) || count_of(a.var.shape()) < count_of(b.var.shape()));
  ExampleFactor& scaled = scales_a ? a : b;
  if (can_scale(scaled)) {
    scaled.var = weighted(scaled);
  } else {  // only the indices differ between the examples
    Shape shape = scaled.var.shape();
    shape.insert(0, weights.size(0));
    scaled.letters = examples + scaled.letters;
    scaled.var = broadcast_to(expand_dims(scaled.var, 0), shape) * aligned(weights, {examples}, scaled.letters);
  }
  if (a.classes == 0 && b.classes == 0) return einsum(a.letters + "," + b.letters + "->" + result, a.var, b.var);
  const ExampleFactor &hot = a.classes != 0 ? a : b, &part = a.classes != 0 ? b : a;
  const std::size_t axis = result.find(hot.classes);
  const std::string rows = result.substr(0, axis) + hot.letters + result.substr(axis + 1);
  Shape shape = product.shape;
  shape.erase(0);
  const Var zero = zeros(weights.tape(), shape, part.var.dtype());
  return index_add(zero, static_cast<std::int64_t>(axis), hot.var, einsum(part.letters + "->" + rows, part.var));
}

}  // namespace xtape
