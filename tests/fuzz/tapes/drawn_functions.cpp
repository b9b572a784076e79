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

/// With the sum of the squares of the first operand.
Drawn root_of_squares(Drawer& d) {
  const Ref x = d.steady(d.positive(d.floating(1)));
  const Attributes along{{"axis", List{d.axis_of(x)}}, {"keepdims", d.random.one_in(2)}};
  return Draft{{x, d.must("sum", {{d.must("square", {{x}})}, along})}, along};
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
Drawn loss_of_two(Drawer& d) {
  return loss_of(d, 2);
}
Drawn loss_of_three(Drawer& d) {
  return loss_of(d, 3);
}
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

/// Parameters away from 0, of one type.
Drawn positive_two(Drawer& d) {
  const Ref x = d.positive(d.floating());
  return Draft{{x, d.positive(d.fitting(x))}};
}
/// A shape and a probability that is far from 0 and 1.
Drawn shape_and_probability(Drawer& d) {
  const Ref x = d.floating();
  return Draft{{d.positive(x), d.must("sigmoid", {{d.fitting(x)}})}};
}
Drawn probability_and_rate(Drawer& d) {
  const Ref x = d.floating();
  return Draft{{d.must("sigmoid", {{d.fitting(x)}}), d.positive(x)}};
}
Drawn positive_one(Drawer& d) {
  return Draft{{d.positive(d.steady(d.floating()))}};
}
/// The identity plus v vᵀ, which is positive definite.
Drawn vectors(Drawer& d) {
  const Ref mean = d.floating(1);
  const std::int64_t n = d.shape(mean).back();
  const Ref v = d.must("tanh", {{d.fitting({d.type(mean).dtype, {n, 1}})}});
  const Ref outer = d.must("mul", {{v, d.must("transpose", {{v}})}});
  const Ref diagonal = d.must("diag_embed", {{d.source({d.type(mean).dtype, {n}}, {1, 2, d.random.bits()})}});
  return Draft{{mean, d.must("add", {{outer, diagonal}})}};
}
Drawn weights(Drawer& d) {
  const Ref x = d.positive(d.steady(d.floating(1)));
  if (d.shape(x).back() == 0) return std::nullopt;
  const bool again = d.random.one_in(2);
  return Draft{{x}, {{"num_samples", d.random.between(0, again ? 5 : d.shape(x).back())}, {"replacement", again}}};
}
Drawn checked_weights(Drawer& d) {
  const Ref x = d.positive(d.steady(d.floating(1)));
  if (d.shape(x).back() == 0) return std::nullopt;
  return Draft{{x}};
}
Drawn choice(Drawer& d) {
  const Ref x = d.any([](const ValueType& type) { return type.shape.size() > 0; });
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x), size = d.shape(x)[normal(d, x, axis)];
  if (size == 0) return std::nullopt;
  const bool again = d.random.one_in(2);
  Draft draft{{x}, {{"num_samples", d.random.between(0, again ? 5 : size)}, {"replacement", again}, {"axis", axis}}};
  if (d.random.one_in(2)) draft.operands.push_back(d.positive(d.fitting({d.real(), {size}})));
  return draft;
}
Drawn numbers_in_order(Drawer& d) {
  return Draft{{}, {{"n", d.random.below(9)}}};
}
Drawn whole_numbers(Drawer& d) {
  const Shape shape = d.any_shape();
  if (count_of(shape) > d.most_elements()) return std::nullopt;
  const std::int64_t low = d.random.between(-3, 3);
  return Draft{{}, {{"shape", List(shape.begin(), shape.end())}, {"low", low}, {"high", low + d.random.between(1, 9)}}};
}

Drawn two_alike(Drawer& d) {
  const Ref x = d.floating();
  return Draft{{x, d.fitting(x)}};
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
      {"own_gate", {two_alike}},
      {"polygamma", {polygamma}},
      {"tan", {bounded}},
      {"acosh", {above_one}},
      {"bitwise_not", {one_integer, true}},
      {"lerp", {{}, false, true}},
      {"std", {deviation, false, true, true}},
      {"vector_norm", {vector_norm, false, true, true}},
      {"root_of_squares", {root_of_squares, false, true, true}},
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
  for (const char* op : {"exponential", "poisson"}) hints[op] = {positive_one, false, true, true};
  for (const char* op : {"gammainc", "gamma", "beta"}) hints[op] = {positive_two, false, true};
  hints["gammaincinv"] = {shape_and_probability, false, true};
  hints["poisson_quantile"] = {probability_and_rate, false, true, true};
  hints["normal"] = hints["laplace"] = {{}, false, true};
  hints["truncated_normal"] = {positive_two, false, true, true};
  hints["multivariate_normal"] = {vectors, false, true};
  hints["multinomial"] = {weights, false, false, true};
  hints["checked_weights"] = {checked_weights, true};
  hints["choice"] = {choice, false, false, true};
  hints["randperm"] = {numbers_in_order};
  hints["randint"] = {whole_numbers};
  for (const char* op : {"round", "ceil", "trunc"}) hints[op] = {steady_number, true, false, true};
  for (const char* op : {"asin", "acos", "atanh", "erfinv"}) hints[op] = {inside_one};
  for (const char* op : {"sinh", "cosh", "exp2"}) hints[op] = {{}, false, true};
  for (const char* op : {"log2", "log10", "lgamma", "digamma", "atan2", "hypot"})
    hints[op] = {{}, false, false, false, 0};
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"})
    hints[op] = {two_integers, true};
  for (const char* op : {"elu", "selu", "leaky_relu", "hardsigmoid", "hardshrink", "softshrink", "argmin",
                         "count_nonzero", "cummax", "cummin"})
    hints[op] = {{}, false, false, true};
  return hints;
}

}  // namespace xtape::fuzz
