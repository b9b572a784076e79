// renorm, which limits the norms of the slices along an axis.
#include <cmath>

#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

namespace {
std::vector<ValueType> renorm_shape(const OpCall& call) {
  if (call.shape(0).size() < 2)
    throw ShapeError("needs at least two axes, received an array of shape " + to_string(call.shape(0)));
  axis_of(call);
  const double p = call.number("p"), maxnorm = call.number("maxnorm");
  if (!(p > 0)) throw Error("p must be above 0, got " + to_string(Attribute{p}));
  if (!(maxnorm >= 0) || std::isinf(maxnorm))
    throw Error("maxnorm must be a finite number, at least 0, got " + to_string(Attribute{maxnorm}));
  return {call.inputs[0]};
}

Vars expand_renorm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  if (count_of(x.shape()) == 0) return {x * 1};  // no largest element, which is the norm for p = inf
  const auto rank = static_cast<std::int64_t>(x.rank());
  const auto axis = static_cast<std::int64_t>(normal_axis(call.integer("axis"), x.rank()));
  Axes others;
  for (std::int64_t i = 0; i < rank; ++i)
    if (i != axis) others.push_back(i);
  const double maxnorm = call.number("maxnorm");
  const Var norm = vector_norm(x, call.number("p"), others, true);
  return {x * where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)};
}

const Op& renorm_op() {
  static const Op entry{
      .name = "renorm",
      .doc = R"(x, with every slice along `axis` (x[i, …] for axis 0) multiplied by maxnorm / (norm + 1e-7) if its
           p-norm is above maxnorm. p = inf gives the largest |x|. The gradient is that of this formula, and 1 where
           the slice stays unchanged. A slice with NaN stays unchanged.)",
      .inputs = {{"x", Accept::floating}},
      .attributes = {{"axis", AttributeType::integer, "The axis of the slices. Norms are over all other axes.", {}},
                     {"maxnorm", AttributeType::number, "The largest norm that stays unchanged, at least 0.", {}},
                     {"p", AttributeType::number, "The order of the norm, above 0.", 2.0}},
      .shape = renorm_shape,
      .expand = expand_renorm};
  return entry;
}
}  // namespace

Var renorm(const Argument& x, double p, std::int64_t axis, double maxnorm) {
  return apply(renorm_op(), {x}, {{"p", p}, {"axis", axis}, {"maxnorm", maxnorm}})[0];
}

void list_renorm(OpTable& table) {
  table.add(renorm_op());
}

}  // namespace xtape
