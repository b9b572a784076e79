// Hints for elementwise functions, activations, losses and the reductions that are compositions.
#include <limits>

#include "drawn_ops.hpp"

namespace xtape::fuzz {

namespace {
/// Numbers of (-1, 1), away from the ends, where slopes are infinite.
Drawn inside_one(Drawer& d) {
  const Ref x = d.floating();
  return Draft{{d.must("mul", {{d.must("tanh", {{x}}), 0.9}})}};
}

/// Numbers above 1.
Drawn above_one(Drawer& d) {
  const Ref x = d.floating();
  return Draft{{d.must("add", {{d.must("square", {{d.must("tanh", {{x}})}}), 1.25}})}};
}

/// Without poles.
Drawn bounded(Drawer& d) {
  return Draft{{d.must("tanh", {{d.floating()}})}};
}

Drawn polygamma(Drawer& d) {
  return Draft{{d.positive(d.floating())}, {{"n", d.random.below(3)}}};
}

Drawn steady_number(Drawer& d) {
  return Draft{{d.steady(d.number())}};
}

/// x of two or more axes, or of one with one weight.
Drawn prelu(Drawer& d) {
  const Ref x = d.steady(d.floating());
  const Shape& shape = d.shape(x);
  const std::int64_t channels = shape.size() > 1 && d.random.one_in(2) ? shape[1] : 1;
  return Draft{{x, d.fitting({d.type(x).dtype, {channels}})}};
}

Drawn glu(Drawer& d) {
  const Ref x = d.floating(1);
  const std::int64_t axis = d.axis_of(x);
  if (d.shape(x)[normal(d, x, axis)] % 2 == 0) return Draft{{x}, {{"axis", axis}}};
  return Draft{{d.must("concat", {{x, x}, {{"axis", axis}}})}, {{"axis", axis}}};
}

/// With numbers other than 0.
Drawn celu(Drawer& d) {
  return Draft{{d.floating()}, {{"alpha", d.random.pick({0.5, 1.0, 1.7})}}};
}

Drawn hardtanh(Drawer& d) {
  const double low = d.random.pick({-1.0, -0.51, 0.013});
  return Draft{{d.steady(d.floating())}, {{"min_val", low}, {"max_val", low + d.random.pick({0.37, 1.2})}}};
}

/// Of elements with different sizes: not of arrays whose deviation is 0 or NaN.
Drawn deviation(Drawer& d) {
  const Ref x = d.steady(d.floating(1));
  const std::int64_t axis = d.axis_of(x);
  if (d.shape(x)[normal(d, x, axis)] < 2 || count_of(d.shape(x)) == 0) return std::nullopt;
  return Draft{{x}, {{"axis", List{axis}}, {"keepdims", d.random.one_in(2)}, {"correction", d.random.below(2)}}};
}

Drawn vector_norm(Drawer& d) {
  const Ref x = d.steady(d.positive(d.floating(1)));
  const std::int64_t axis = d.axis_of(x);
  if (count_of(d.shape(x)) == 0) return std::nullopt;
  const double infinity = std::numeric_limits<double>::infinity();
  return Draft{{x}, {{"axis", List{axis}}, {"p", d.random.pick({1.0, 2.0, 3.0, 1.5, infinity, -infinity, 0.0})}}};
}

/// Not of arrays without elements, whose mean is NaN.
Drawn mean_of_numbers(Drawer& d) {
  const Ref x = d.floating();
  if (count_of(d.shape(x)) == 0) return std::nullopt;
  return Draft{{x}, {{"keepdims", d.random.one_in(2)}}};
}

/// A loss of `operands` steady arrays of one type.
Draft loss_of(Drawer& d, int operands) {
  const Ref x = d.steady(d.floating());
  Draft draft{{x}, {{"reduction", std::string(d.random.pick({"none", "sum"}))}}};
  for (int i = 1; i < operands; ++i) draft.operands.push_back(d.steady(d.fitting(x)));
  return draft;
}
Drawn loss_of_two(Drawer& d) { return loss_of(d, 2); }
Drawn loss_of_three(Drawer& d) { return loss_of(d, 3); }
Drawn huber(Drawer& d) {
  Draft draft = loss_of(d, 2);
  draft.attributes.set("delta", d.random.pick({0.5, 1.0, 1.7}));
  return draft;
}
Drawn with_positive_last(Drawer& d) {
  Draft draft = loss_of(d, 3);
  draft.operands[2] = d.positive(d.fitting(std::get<Ref>(draft.operands[0])));
  return draft;
}
Drawn kl_div(Drawer& d) {
  Draft draft = loss_of(d, 2);
  draft.operands[1] = d.positive(d.fitting(std::get<Ref>(draft.operands[0])));
  return draft;
}
Drawn triplet(Drawer& d) {
  const Ref x = d.steady(d.floating(1));
  Draft draft{{x}, {{"reduction", std::string("none")}, {"p", 2.0}}};
  for (int i = 1; i < 3; ++i) draft.operands.push_back(d.steady(d.fitting(x)));
  return draft;
}
/// Vectors that are not 0.
Drawn cosine(Drawer& d) {
  const Ref x = d.positive(d.floating(1));
  return Draft{{x, d.positive(d.fitting(x))}, {{"axis", d.axis_of(x)}}};
}
/// Classes along any axis, with weights or without.
Drawn of_classes(Drawer& d) {
  const Ref x = d.floating(1);
  const std::int64_t axis = d.random.between(-rank_of(d, x), -1);
  Shape wanted = d.shape(x);
  const std::size_t place = normal(d, x, axis);
  const std::int64_t classes = wanted[place];
  if (count_of(wanted) == 0) return std::nullopt;
  wanted.erase(place);
  const auto targets = d.indices(wanted, classes);
  if (!targets) return std::nullopt;
  Draft draft{{x, *targets}, {{"axis", axis}, {"reduction", std::string(d.random.pick({"none", "sum"}))}}};
  if (d.random.one_in(2)) draft.operands.push_back(d.positive(d.fitting({d.type(x).dtype, {classes}})));
  return draft;
}

Drawn one_integer(Drawer& d) {
  return Draft{{d.integer()}};
}

Drawn two_integers(Drawer& d) {
  const Ref x = d.integer();
  return Draft{{x, d.random.one_in(2) ? Term(d.fitting(x)) : Term(d.random.below(9))}};
}
}  // namespace

Hints hints_of_functions() {
  Hints hints{
      {"nan_to_num", {{}, true}},
      {"polygamma", {polygamma}},
      {"tan", {bounded}},
      {"acosh", {above_one}},
      {"bitwise_not", {one_integer, true}},
      {"lerp", {{}, false, true}},
      {"std", {deviation, false, true, true}},
      {"vector_norm", {vector_norm, false, true, true}},
      {"nansum", {{}, false, true}},
      {"nanmean", {mean_of_numbers}},
      {"prod", {{}, false, true}},
      {"cumprod", {{}, false, true}},
      {"logcumsumexp", {{}, false, true}},
      {"mse_loss", {loss_of_two, false, true}},
      {"l1_loss", {loss_of_two, false, true, true}},
      {"huber_loss", {huber, false, true, true}},
      {"smooth_l1_loss", {loss_of_two, false, true, true}},
      {"kl_div", {kl_div, false, true}},
      {"binary_cross_entropy_with_logits", {loss_of_two, false, true}},
      {"hinge_embedding_loss", {loss_of_two, false, true, true}},
      {"margin_ranking_loss", {loss_of_three, false, true, true}},
      {"gaussian_nll_loss", {with_positive_last, false, true}},
      {"poisson_nll_loss", {loss_of_two, false, true, true}},
      {"triplet_margin_loss", {triplet, false, true, true}},
      {"cosine_similarity", {cosine}},
      {"nll_loss", {of_classes, false, true}},
      {"cross_entropy_loss", {of_classes, false, true}},
      {"celu", {celu}},
      {"prelu", {prelu, false, true, true}},
      {"glu", {glu}},
      {"hardtanh", {hardtanh, true, false, true}},
      {"relu6", {{}, true, false, true}},
      {"threshold", {{}, true, false, true}},
      {"hardswish", {{}, false, true, true}},
  };
  for (const char* op : {"round", "ceil", "trunc"}) hints[op] = {steady_number, true, false, true};
  for (const char* op : {"asin", "acos", "atanh", "erfinv"}) hints[op] = {inside_one};
  for (const char* op : {"sinh", "cosh", "exp2"}) hints[op] = {{}, false, true};
  for (const char* op : {"log2", "log10", "lgamma", "digamma", "atan2", "hypot"})
    hints[op] = {{}, false, false, false, 0};
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"})
    hints[op] = {two_integers, true};
  for (const char* op : {"elu", "selu", "leaky_relu", "hardsigmoid", "hardshrink", "softshrink", "argmin", "count_nonzero",
                         "cummax", "cummin"})
    hints[op] = {{}, false, false, true};
  return hints;
}

}  // namespace xtape::fuzz
