// Elementwise functions of one float variable.
#include <cmath>

#include "kernels/math/gelu.hpp"
#include "ops/elementwise/arithmetic.hpp"

namespace xtape {

namespace {
const UnaryRow function_rows[] = {
    {"sqrt", "The square root of x; NaN where x is negative.",
     [](const Var& g, const Var&, const Var& y) { return g * 0.5 / y; }},
    {"rsqrt", "1 / sqrt(x).", [](const Var& g, const Var&, const Var& y) { return g * (square(y) * y * -0.5); },
     [](const Var& x) { return 1 / sqrt(x); }},
    {"exp", "e ** x.", [](const Var& g, const Var&, const Var& y) { return g * y; }},
    {"expm1", "e ** x - 1, accurate near 0.", [](const Var& g, const Var&, const Var& y) { return g * (y + 1); }},
    {"log", "The natural logarithm of x; -inf at 0, NaN where x is negative.",
     [](const Var& g, const Var& x, const Var&) { return g / x; }},
    {"log1p", "log(1 + x), accurate near 0.", [](const Var& g, const Var& x, const Var&) { return g / (x + 1); }},
    {"sin", "The sine of x, in radians.", [](const Var& g, const Var& x, const Var&) { return g * cos(x); }},
    {"cos", "The cosine of x, in radians.", [](const Var& g, const Var& x, const Var&) { return -(g * sin(x)); }},
    {"tanh", "The hyperbolic tangent of x.",
     [](const Var& g, const Var&, const Var& y) { return g * (1 - square(y)); }},
    {"erf", "The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x.",
     [](const Var& g, const Var& x, const Var&) { return g * (exp(-square(x)) * M_2_SQRTPI); }},
    {"sigmoid", "1 / (1 + exp(-x)).", [](const Var& g, const Var&, const Var& y) { return g * (y * (1 - y)); },
     [](const Var& x) { return 1 / (1 + exp(-x)); }},
    {"relu", "maximum(x, 0). The gradient at 0 is 0. NaN stays NaN.",
     [](const Var& g, const Var&, const Var& y) { return where(y > 0, g, 0); },
     [](const Var& x) { return where(x <= 0, 0, x); }},
    {"silu", "x * sigmoid(x) (Hendrycks and Gimpel, 2016; also called swish).",
     [](const Var& g, const Var& x, const Var& y) {
       const Var s = sigmoid(x);
       return g * (s + y * (1 - s));
     },
     [](const Var& x) { return x * sigmoid(x); }},
    {"softplus", "log(1 + exp(x)), computed so that exp does not overflow.",
     [](const Var& g, const Var& x, const Var&) { return g * sigmoid(x); },
     [](const Var& x) { return relu(x) + log1p(exp(-abs(x))); }},
};

/// Returns whether `approximate` selects gelu's tanh form. Throws Error if it is neither 'none' nor 'tanh'.
bool tanh_form(const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh")
    throw Error("approximate must be 'none' or 'tanh', got '" + approximate + "'");
  return approximate == "tanh";
}

std::vector<ValueType> gelu_type(const OpCall& call) {
  tanh_form(call.text("approximate"));
  return same_dtype(call);
}

std::vector<AttributeSpec> gelu_attributes() {
  return {{"approximate", AttributeType::text, "'none' for the error function, 'tanh' for the approximation by tanh.",
           std::string("none")}};
}

/// Returns the argument of the hyperbolic tangent in gelu's tanh form.
Var tanh_argument(const Var& x) {
  return gelu_scale * (x + gelu_cubic * (x * square(x)));
}

const Op& gelu_grad_op() {
  static const Op entry{
      .name = "gelu_grad",
      .doc = R"(The cotangent times the derivative of gelu at x. With approximate 'none' the derivative is F(x) + x *
           f(x), where F and f are the distribution function and the density of the standard normal
           distribution. With 'tanh' it is (1 + t) / 2 + x / 2 * (1 - t * t) * sqrt(2 / pi) * (1 + 3 *
           0.044715 * x * x), where t is the hyperbolic tangent in gelu.)",
      .inputs = {{"x", Accept::floating}, {"cotangent", Accept::floating}},
      .attributes = gelu_attributes(),
      .shape = gelu_type,
      .expand =
          +[](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            if (tanh_form(call.text("approximate"))) {
              const Var t = tanh(tanh_argument(x));
              const Var slope = gelu_scale * (1 + 3 * gelu_cubic * square(x));
              return Vars{call.inputs[1] * (0.5 * (1 + t) + 0.5 * x * (1 - square(t)) * slope)};
            }
            const Var below = 0.5 * (1 + erf(x * M_SQRT1_2));
            const Var density = exp(square(x) * -0.5) * (M_SQRT1_2 * 0.5 * M_2_SQRTPI);
            return Vars{call.inputs[1] * (below + x * density)};
          },
      .lowering = {.tile = tile_by_name}};
  return entry;
}

const Op& gelu_op() {
  static const Op entry{
      .name = "gelu",
      .doc = R"(The Gaussian error linear unit (Hendrycks and Gimpel, 2016). With approximate 'none' it is x / 2 * (1 +
           erf(x / sqrt(2))). With 'tanh' it is the approximation x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x **
           3))).)",
      .inputs = {{"x", Accept::floating}},
      .attributes = gelu_attributes(),
      .shape = gelu_type,
      .gradient =
          +[](const GradientCall& call) {
            return apply(gelu_grad_op(), {call.inputs[0], call.cotangent()}, call.attributes);
          },
      .expand =
          +[](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            const bool by_tanh = tanh_form(call.text("approximate"));
            return Vars{0.5 * x * (1 + (by_tanh ? tanh(tanh_argument(x)) : erf(x * M_SQRT1_2)))};
          },
      .lowering = {.tile = tile_by_name}};
  return entry;
}

/// The expansion of gelu's tanh form, with x * (1 + a * x ** 2) in place of x + a * x ** 3.
Vars factored_gelu(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {0.5 * x * (1 + tanh(gelu_scale * x * (1 + gelu_cubic * square(x))))};
}

void add_gelu_rules(OpTable& table) {
  const std::vector<ValueType> sample{{Dtype::float64, {2, 3}}};
  const Attributes by_tanh{{"approximate", std::string("tanh")}};
  table.add({.name = "gelu by tanh", .op = &gelu_op(), .inputs = sample, .attributes = by_tanh});
  table.add({.name = "gelu by tanh, factored",
             .op = &gelu_op(),
             .inputs = sample,
             .attributes = by_tanh,
             .pattern = factored_gelu});
  table.add({.name = "gelu by erf",
             .op = &gelu_op(),
             .inputs = sample,
             .attributes = {{"approximate", std::string("none")}}});
}
}  // namespace

XTAPE_UNARY(sqrt)
XTAPE_UNARY(rsqrt)
XTAPE_UNARY(exp)
XTAPE_UNARY(expm1)
XTAPE_UNARY(log)
XTAPE_UNARY(log1p)
XTAPE_UNARY(sin)
XTAPE_UNARY(cos)
XTAPE_UNARY(tanh)
XTAPE_UNARY(erf)
XTAPE_UNARY(sigmoid)
XTAPE_UNARY(relu)
XTAPE_UNARY(silu)
XTAPE_UNARY(softplus)
Var gelu(const Argument& x, const std::string& approximate) {
  return apply(gelu_op(), {x}, {{"approximate", approximate}})[0];
}

void list_functions(OpTable& table) {
  static const std::vector<Op> ops = unary_ops(function_rows, inputs_of("x"), same_dtype);
  for (const Op& op : ops) table.add(op);
  table.add(gelu_op());
  table.add(gelu_grad_op());
  add_gelu_rules(table);
}

}  // namespace xtape
