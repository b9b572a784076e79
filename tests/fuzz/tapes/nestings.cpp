#include "nestings.hpp"

#include <algorithm>

#include "function.hpp"
#include "xtape/custom_gradient.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/loops.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"
#include "xtape/vmap.hpp"

namespace xtape::fuzz {

namespace {
constexpr std::int64_t few = 12;  // elements, for which a gradient is a tangent for each of them

std::int64_t elements_of(const Vars& vars) {
  std::int64_t count = 0;
  for (const Var& var : vars) count += count_of(var.shape());
  return count;
}

/// The function's sum with fixed weights.
Var weighted(const Mapping& f, const Vars& x, std::uint64_t seed) {
  const Vars y = f(x);
  return inner(y, numbers_like(x[0].tape(), y, seed));
}

Vars by_grad(const Mapping& f, const Vars& x, std::uint64_t seed) {
  return grad(weighted(f, x, seed), x, {.materialize_grads = true});
}
/// The gradient, from a tangent for each element of the inputs.
Vars by_tangents(const Mapping& f, const Vars& x, std::uint64_t seed) {
  if (elements_of(x) > few) return by_grad(f, x, seed);
  return jacobian(weighted(f, x, seed), x, {.mode = JacobianMode::forward});
}
/// The gradient of the function inside of a checkpoint.
Vars by_grad_of_checkpoint(const Mapping& f, const Vars& x, std::uint64_t seed) {
  return by_grad([&](const Vars& inner) { return checkpoint(f, inner); }, x, seed);
}

Vars by_jvp(const Mapping& f, const Vars& x, std::uint64_t seed) {
  return jvp(f(x), x, numbers_like(x[0].tape(), x, seed));
}
/// The tangent as the derivative of <v, J' u> by u.
Vars by_two_grads(const Mapping& f, const Vars& x, std::uint64_t seed) {
  const Vars y = f(x);
  Vars u;
  for (const Var& each : y) u.push_back(zeros_like(each) * 1.0);
  const Var product = inner(grad(y, x, u, {.materialize_grads = true}), numbers_like(x[0].tape(), x, seed));
  return grad(product, u, {.materialize_grads = true});
}

Vars by_vmap(const Mapping& f, const Vars& x, std::uint64_t) {
  return vmap(f, x);
}
Vars by_loop(const Mapping& f, const Vars& x, std::uint64_t) {
  std::vector<Vars> examples;
  for (std::int64_t i = 0; i < batch; ++i) {
    Vars example;
    for (const Var& each : x) example.push_back(squeeze(slice(each, {i}, {i + 1}), {0}));
    examples.push_back(f(example));
  }
  Vars all;
  for (std::size_t k = 0; k < examples[0].size(); ++k) {
    Vars rows;
    for (const Vars& example : examples) rows.push_back(example[k]);
    all.push_back(stack(rows));
  }
  return all;
}
Vars by_scan(const Mapping& f, const Vars& x, const ScanOptions& options) {
  return scan([&](const Vars& slices, const Vars&) { return std::pair(f(slices), Vars()); }, x, {}, options).outputs;
}
Vars by_plain_scan(const Mapping& f, const Vars& x, std::uint64_t) {
  ScanOptions options;
  options.axis = 0;
  return by_scan(f, x, options);
}
Vars by_scan_in_segments(const Mapping& f, const Vars& x, std::uint64_t) {
  ScanOptions options;
  options.axis = 0;
  options.checkpoint_every = {1};
  return by_scan(f, x, options);
}

Vars as_it_is(const Mapping& f, const Vars& x, std::uint64_t) {
  return f(x);
}
Vars by_checkpoint(const Mapping& f, const Vars& x, std::uint64_t) {
  return checkpoint(f, x);
}

Vars by_custom_gradient(const Mapping& f, const Vars& x, std::uint64_t) {
  const auto rule = [&](const Vars& inputs, const Vars&, const Vars& cotangents) {
    return grad(f(inputs), inputs, cotangents, {.materialize_grads = true});
  };
  return custom_gradient(f, rule, x);
}
/// Two branches of the same values: which is taken varies with the example.
Vars by_cond(const Mapping& f, const Vars& x, std::uint64_t) {
  return cond(
      sum(x[0]) > 0.0, f, [&](const Vars& inputs) { return checkpoint(f, inputs); }, x);
}
/// States that hold the results after the one step that takes place, of at most two.
Vars by_while_loop(const Mapping& f, const Vars& x, std::uint64_t) {
  Vars states = x;
  for (const Var& each : f(x)) states.push_back(zeros_like(each));
  states.push_back(sum(x[0]) * 0.0);
  const auto body = [&](const Vars& before) {
    Vars after(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(x.size()));
    for (const Var& each : f(Vars(after))) after.push_back(each);
    after.push_back(before.back() + 1.0);
    return after;
  };
  const Vars last = while_loop([](const Vars& now) { return now.back() < 1.0; }, body, states, 2).states;
  return Vars(last.begin() + static_cast<std::ptrdiff_t>(x.size()), last.end() - 1);
}

const std::vector<Transformation>& transformations() {
  static const std::vector<Transformation> all = {
      {"grad", false, {by_grad, by_tangents, by_grad_of_checkpoint}},
      {"jvp", false, {by_jvp, by_two_grads}},
      {"vmap", true, {by_vmap, by_loop, by_plain_scan, by_scan_in_segments}},
      {"body", false, {as_it_is, by_checkpoint, by_custom_gradient, by_cond, by_while_loop}}};
  return all;
}
}  // namespace

Nesting Nesting::drawn(Random& random) {
  Nesting nesting;
  for (std::int64_t depth = random.between(1, 3); depth > 0; --depth)
    nesting.levels.push_back(&random.pick(transformations()));
  return nesting;
}

std::string Nesting::name() const {
  std::string text;
  for (const Transformation* level : levels) text = std::string(level->name) + (text.empty() ? "" : "(" + text + ")");
  return text;
}

Mapping Nesting::of(Mapping f, Random* random) const {
  std::uint64_t seed = 31;
  for (const Transformation* level : levels) {
    const Writing writing = random == nullptr ? level->writings[0] : random->pick(level->writings);
    f = [inner = std::move(f), writing, seed](const Vars& x) { return writing(inner, x, seed); };
    seed += 100;
  }
  return f;
}

bool draws_or_is_full(const Tape& tape, std::size_t more_axes) {
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op->random || (node.body && draws_or_is_full(*node.body, more_axes))) return true;
    for (const ValueType& type : node.outputs)
      if (type.shape.size() + more_axes > Shape::max_rank) return true;
  }
  return false;
}

Array spread(const Array& array, double by) {
  Shape shape = array.shape();
  shape.insert(0, batch);
  Array all(array.dtype(), shape);
  for (std::int64_t i = 0; i < all.count(); ++i)
    all.as<double>()[i] = array.as<double>()[i % array.count()] * (1 + by * static_cast<double>(i / array.count()));
  return all;
}

int Nesting::maps() const {
  return static_cast<int>(
      std::count_if(levels.begin(), levels.end(), [](const Transformation* level) { return level->maps; }));
}

}  // namespace xtape::fuzz
