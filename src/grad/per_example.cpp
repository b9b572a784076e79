// Norms of per-example gradients, and sums of clipped per-example gradients.
#include "xtape/per_example.hpp"

#include <cmath>

#include "grad/example_products.hpp"
#include "tape/calls.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/random.hpp"

namespace xtape {

namespace {
struct PerExample {
  Var losses;      ///< [b]
  Vars gradients;  ///< [b, …weight] each.
  Var norms;       ///< [b]
};

PerExample record_per_example(const std::string& name, const ExampleLoss& loss, const Vars& weights, const Vars& inputs,
                              const VmapOptions& options, const Caller& caller) {
  if (!loss) throw Error(name + ": the function of the loss is empty");
  if (weights.empty()) throw Error(name + ": needs at least one weight");
  if (!options.out_axes.empty())
    throw Error(name + ": its results have the examples as axis 0: out_axes must be empty");
  for (const Var& weight : weights)
    if (weight.dtype() != weights[0].dtype())
      throw DtypeError(name + ": the weights must have one dtype, got " + to_string(weights[0].type()) + " and " +
                       to_string(weight.type()));
  const auto loss_and_gradients = [&](const Vars& example) {
    const Var value = loss(example);
    if (value.rank() != 0)
      throw ShapeError(name + ": the loss of one example must have no axes, got " + to_string(value.type()));
    Vars results = grad(value, weights, {}, caller);
    results.insert(results.begin(), value);
    return results;
  };
  const Vars mapped = vmap(loss_and_gradients, inputs, options, caller);
  PerExample found{mapped[0], {mapped.begin() + 1, mapped.end()}, Var()};
  for (const Var& gradient : found.gradients) {
    const Var squares = squared_norms(gradient);
    found.norms = found.norms.empty() ? squares : found.norms + squares;
  }
  found.norms = sqrt(maximum(found.norms, 0));  // sums of inner products can round to less than 0
  return found;
}

/// Runs body(name) on the tape of `inputs`. If `body` throws, the tape stays unchanged. Throws Error if there are no
/// inputs.
template <class Body>
auto whole_or_nothing(const std::string& name, const Vars& inputs, const Caller& caller, const Body& body) {
  if (inputs.empty()) throw Error(name + ": needs at least one input");
  return all_or_nothing(inputs[0].tape(), nullptr, caller, [&] { return body(name); });
}
}  // namespace

PerExampleNorms per_example_norms(const ExampleLoss& loss, const Vars& weights, const Vars& inputs,
                                  const VmapOptions& options, Caller caller) {
  return whole_or_nothing("per_example_norms", inputs, caller, [&](const std::string& name) {
    const PerExample found = record_per_example(name, loss, weights, inputs, options, caller);
    return PerExampleNorms{found.losses, found.norms};
  });
}

ClippedGradients clipped_gradients(const ExampleLoss& loss, const Vars& weights, const Vars& inputs, double clip_norm,
                                   const VmapOptions& options, Caller caller) {
  return whole_or_nothing("clipped_gradients", inputs, caller, [&](const std::string& name) {
    if (!(clip_norm > 0 && std::isfinite(clip_norm)))
      throw Error(name + ": clip_norm must be positive and finite, got " + to_string(Literal(clip_norm)));
    const PerExample found = record_per_example(name, loss, weights, inputs, options, caller);
    const Var factors = clip_norm / maximum(found.norms, clip_norm);
    ClippedGradients clipped{{}, found.losses, found.norms};
    for (const Var& gradient : found.gradients) clipped.gradients.push_back(weighted_sum(gradient, factors));
    return clipped;
  });
}

Vars with_noise(const Vars& xs, double deviation, Caller caller) {
  return whole_or_nothing("with_noise", xs, caller, [&](const std::string& name) {
    if (!(deviation >= 0 && std::isfinite(deviation)))
      throw Error(name + ": deviation must be finite and at least 0, got " + to_string(Literal(deviation)));
    Vars noisy;
    for (const Var& x : xs) {
      if (x.tape() != xs[0].tape()) throw HandleError(name + ": its vars belong to different tapes");
      if (!is_floating(x.dtype())) throw DtypeError(name + ": needs float arrays, got " + to_string(x.type()));
      noisy.push_back(x + cast(randn(x.tape(), x.shape(), Dtype::float64) * deviation, x.dtype()));
    }
    return noisy;
  });
}

}  // namespace xtape
