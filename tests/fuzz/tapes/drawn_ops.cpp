// Hints for elementwise ops and reductions, and the table of all hints.
#include "drawn_ops.hpp"

#include <algorithm>

namespace xtape::fuzz {

namespace {
Drawn clip(Drawer& d) {
  const double low = d.random.pick({-1.0, -0.51, 0.013});
  return Draft{{d.steady(d.floating())}, {{"low", low}, {"high", low + d.random.pick({0.37, 1.2})}}};
}

Drawn pow(Drawer& d) {
  const Ref x = d.number();
  if (!is_floating(d.type(x).dtype)) return Draft{{x, d.random.pick<std::int64_t>({0, 1, 2, 3, -1})}};
  const Ref base = d.positive(x);
  if (d.random.one_in(2)) return Draft{{base, d.random.pick({2.0, 0.5, -0.5, 1.7, -1.0, 3.0})}};
  return Draft{{base, d.partner(base)}};
}

/// Not of an array without elements, whose mean is NaN.
Drawn mean(Drawer& d) {
  const Ref x = d.number();
  if (count_of(d.shape(x)) == 0) return std::nullopt;
  Draft draft{{x}, {{"keepdims", d.random.one_in(2)}}};
  if (d.random.one_in(2) && !d.shape(x).empty()) draft.attributes.set("axis", List{d.axis_of(x)});
  return draft;
}

/// The correction is at most 1, and 0 if an axis has fewer than two elements, so that the divisor is positive.
Drawn variance(Drawer& d) {
  const Ref x = d.floating();
  std::int64_t least = 2;
  for (const std::int64_t size : d.shape(x)) least = std::min(least, size);
  Draft draft{{x}, {{"keepdims", d.random.one_in(2)}, {"correction", least < 2 ? 0 : d.random.below(2)}}};
  if (d.random.one_in(2)) draft.attributes.set("axis", List{d.axis_of(x)});
  if (d.shape(x).empty()) draft.attributes = {};
  return draft;
}

/// Divides by a number for which quotients are not near an integer.
Drawn divided_down(Drawer& d) {
  if (d.random.one_in(2)) return Draft{{d.steady(d.number()), 0.75}};
  return Draft{{d.steady(d.number()), d.random.between(1, 3)}};
}

/// int8 numbers with a scale for each index of some axes.
Drawn dequantize(Drawer& d) {
  const Shape shape = d.any_shape();
  Shape scale = shape;
  for (std::int64_t& size : scale)
    if (d.random.one_in(2)) size = 1;
  return Draft{{d.source({Dtype::int8, shape}), d.fitting({d.real(), scale})}};
}

/// With a condition that holds.
Drawn watched(Drawer& d) {
  return Draft{{d.number(), std::int64_t{1}}};
}

/// With orders whose powers stay moderate, and a norm that is not near those of slices of short numbers.
Drawn renorm(Drawer& d) {
  const Ref x = d.steady(d.floating(2));
  const double maxnorm = d.random.pick({0.37, 1.213});
  return Draft{{x}, {{"p", d.random.pick({1.0, 2.0, 3.0})}, {"axis", d.axis_of(x)}, {"maxnorm", maxnorm}}};
}

Drawn one_of_a_type(Drawer& d) {
  return Draft{{d.steady(d.number())}};
}

Hints hints_of_numbers() {
  return {
      {"stop_gradient", {{}, true}},
      {"watch", {watched, true}},
      {"neg", {{}, true}},
      {"dequantize", {dequantize, true}},
      // Ops with jumps or kinks.
      {"clip", {clip, true, false, true}},
      {"floor", {one_of_a_type, true, false, true}},
      {"sign", {one_of_a_type, true, false, true}},
      {"abs", {one_of_a_type, true, false, true}},
      {"relu", {{}, true, false, true}},
      {"maximum", {{}, true, false, true}},
      {"minimum", {{}, true, false, true}},
      {"max", {{}, true, false, true}},
      {"min", {{}, true, false, true}},
      {"argmax", {{}, true, false, true}},
      {"renorm", {renorm, false, false, true}},
      {"cast", {{}, false, false, true}},
      {"equal", {{}, false, false, true}},
      {"not_equal", {{}, false, false, true}},
      {"less", {{}, false, false, true}},
      {"less_equal", {{}, false, false, true}},
      {"greater", {{}, false, false, true}},
      {"greater_equal", {{}, false, false, true}},
      {"categorical", {{}, false, false, true}},
      // Ops that need numbers away from 0, and ops with large results.
      {"div", {{}, false, true, false, 1}},
      {"mod", {{}, false, false, true, 1}},
      {"floor_divide", {divided_down, false, false, true}},
      {"log", {{}, false, false, false, 0}},
      {"sqrt", {{}, false, false, false, 0}},
      {"rsqrt", {{}, false, false, false, 0}},
      {"log1p", {{}, false, false, false, 0}},
      {"pow", {pow, false, true}},
      {"mul", {{}, false, true}},
      {"add", {{}, false, true}},
      {"square", {{}, false, true}},
      {"mean", {mean}},
      {"var", {variance, false, true}},
      {"exp", {{}, false, true}},
      {"expm1", {{}, false, true}},
      {"sum", {{}, false, true}},
      {"cumsum", {{}, false, true}},
      {"logsumexp", {{}, false, true}},
      {"gelu_grad", {{}, false, true}},
  };
}
}  // namespace

const Hint& hint_of(const std::string& op) {
  static const Hint none;
  static const Hints hints = [] {
    Hints all = hints_of_numbers();
    for (Hints some : {hints_of_shapes(), hints_of_products(), hints_of_linear_algebra(), hints_of_indexing(),
                       hints_of_channels(), hints_of_functions(), hints_of_sequences()})
      all.merge(some);
    return all;
  }();
  const auto found = hints.find(op);
  return found == hints.end() ? none : found->second;
}

std::vector<std::string> words_of(const std::string& attribute) {
  if (attribute == "approximate") return {"none", "tanh"};
  if (attribute == "reduction") return {"none", "sum"};
  if (attribute == "interpolation") return {"linear", "lower", "higher", "nearest", "midpoint"};
  return {};
}

}  // namespace xtape::fuzz
