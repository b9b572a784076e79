// Elementwise functions of one float variable.
#include <cmath>

#include "kernels/math/gelu.hpp"
#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Defines an elementwise op on floats.
Op function(const char* name, const char* doc, ElementwiseGradient gradient) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", Accept::floating}};
  op.shape = same_dtype;
  op.lowering.tile = tile_by_name;
  op.gradient = gradient;
  op.lowering.overwrites = {0};
  return op;
}

const Op& sqrt_op() {
  static const Op entry =
      function("sqrt", "The square root of x; NaN where x is negative.",
               [](const GradientCall& call) { return Vars{call.cotangent() * 0.5 / call.outputs[0]}; });
  return entry;
}

const Op& rsqrt_op() {
  static const Op entry = [] {
    Op op = function("rsqrt", "1 / sqrt(x).", [](const GradientCall& call) {
      const Var& y = call.outputs[0];
      return Vars{call.cotangent() * (square(y) * y * -0.5)};
    });
    op.expand = [](const ExpandCall& call) { return Vars{1 / sqrt(call.inputs[0])}; };
    return op;
  }();
  return entry;
}

const Op& exp_op() {
  static const Op entry =
      function("exp", "e ** x.", [](const GradientCall& call) { return Vars{call.cotangent() * call.outputs[0]}; });
  return entry;
}

const Op& expm1_op() {
  static const Op entry = function("expm1", "e ** x - 1, accurate near 0.", [](const GradientCall& call) {
    return Vars{call.cotangent() * (call.outputs[0] + 1)};
  });
  return entry;
}

const Op& log_op() {
  static const Op entry = function("log", "The natural logarithm of x; -inf at 0, NaN where x is negative.",

                                   [](const GradientCall& call) { return Vars{call.cotangent() / call.inputs[0]}; });
  return entry;
}

const Op& log1p_op() {
  static const Op entry = function("log1p", "log(1 + x), accurate near 0.", [](const GradientCall& call) {
    return Vars{call.cotangent() / (call.inputs[0] + 1)};
  });
  return entry;
}

const Op& sin_op() {
  static const Op entry = function("sin", "The sine of x, in radians.", [](const GradientCall& call) {
    return Vars{call.cotangent() * cos(call.inputs[0])};
  });
  return entry;
}

const Op& cos_op() {
  static const Op entry = function("cos", "The cosine of x, in radians.", [](const GradientCall& call) {
    return Vars{-(call.cotangent() * sin(call.inputs[0]))};
  });
  return entry;
}

const Op& tanh_op() {
  static const Op entry = function("tanh", "The hyperbolic tangent of x.", [](const GradientCall& call) {
    return Vars{call.cotangent() * (1 - square(call.outputs[0]))};
  });
  return entry;
}

const Op& erf_op() {
  static const Op entry = function(
      "erf", "The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x.",

      [](const GradientCall& call) { return Vars{call.cotangent() * (exp(-square(call.inputs[0])) * M_2_SQRTPI)}; });
  return entry;
}

const Op& sigmoid_op() {
  static const Op entry = [] {
    Op op = function("sigmoid", "1 / (1 + exp(-x)).", [](const GradientCall& call) {
      const Var& y = call.outputs[0];
      return Vars{call.cotangent() * (y * (1 - y))};
    });
    op.expand = [](const ExpandCall& call) { return Vars{1 / (1 + exp(-call.inputs[0]))}; };
    return op;
  }();
  return entry;
}

const Op& relu_op() {
  static const Op entry = [] {
    Op op = function("relu", "maximum(x, 0). The gradient at 0 is 0. NaN stays NaN.",
                     [](const GradientCall& call) { return Vars{where(call.outputs[0] > 0, call.cotangent(), 0)}; });
    op.expand = [](const ExpandCall& call) { return Vars{where(call.inputs[0] <= 0, 0, call.inputs[0])}; };
    return op;
  }();
  return entry;
}

const Op& silu_op() {
  static const Op entry = [] {
    Op op = function("silu", "x * sigmoid(x) (Hendrycks and Gimpel, 2016; also called swish).",

                     [](const GradientCall& call) {
                       const Var& x = call.inputs[0];
                       const Var s = sigmoid(x);
                       return Vars{call.cotangent() * (s + call.outputs[0] * (1 - s))};
                     });
    op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * sigmoid(call.inputs[0])}; };
    return op;
  }();
  return entry;
}

const Op& softplus_op() {
  static const Op entry = [] {
    Op op = function("softplus", "log(1 + exp(x)), computed so that exp does not overflow.",

                     [](const GradientCall& call) { return Vars{call.cotangent() * sigmoid(call.inputs[0])}; });
    op.expand = [](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      return Vars{relu(x) + log1p(exp(-abs(x)))};
    };
    return op;
  }();
  return entry;
}

/// Returns whether `approximate` selects gelu's tanh form. Throws Error if it is neither 'none' nor 'tanh'.
bool tanh_form(const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh")
    throw Error("approximate must be 'none' or 'tanh', got '" + approximate + "'");
  return approximate == "tanh";
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
      .shape =
          [](const OpCall& call) {
            tanh_form(call.text("approximate"));
            return same_dtype(call);
          },
      .expand =
          [](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            if (tanh_form(call.attributes().get<std::string>("approximate"))) {
              const Var t = tanh(tanh_argument(x));
              const Var slope = gelu_scale * (1 + 3 * gelu_cubic * square(x));
              return Vars{call.inputs[1] * (0.5 * (1 + t) + 0.5 * x * (1 - square(t)) * slope)};
            }
            const Var below = 0.5 * (1 + erf(x * M_SQRT1_2));
            const Var density = exp(square(x) * -0.5) * (M_SQRT1_2 * 0.5 * M_2_SQRTPI);
            return Vars{call.inputs[1] * (below + x * density)};
          },
      .lowering = {.tile = tile_by_name, .overwrites = {0, 1}}};
  return entry;
}

const Op& gelu_op() {
  static const Op entry = [] {
    Op op = function(
        "gelu",
        "The Gaussian error linear unit (Hendrycks and Gimpel, 2016). With approximate 'none' it is x / 2 * (1 + erf(x "
        "/ sqrt(2))). With 'tanh' it is the approximation x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))).",

        [](const GradientCall& call) {
          return apply(gelu_grad_op(), {call.inputs[0], call.cotangent()}, call.attributes());
        });
    op.attributes = gelu_attributes();
    op.shape = [](const OpCall& call) {
      tanh_form(call.text("approximate"));
      return same_dtype(call);
    };
    op.expand = [](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const bool by_tanh = tanh_form(call.attributes().get<std::string>("approximate"));
      return Vars{0.5 * x * (1 + (by_tanh ? tanh(tanh_argument(x)) : erf(x * M_SQRT1_2)))};
    };
    return op;
  }();
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

Var sqrt(const Argument& x) {
  return apply(sqrt_op(), {x})[0];
}
Var rsqrt(const Argument& x) {
  return apply(rsqrt_op(), {x})[0];
}
Var exp(const Argument& x) {
  return apply(exp_op(), {x})[0];
}
Var expm1(const Argument& x) {
  return apply(expm1_op(), {x})[0];
}
Var log(const Argument& x) {
  return apply(log_op(), {x})[0];
}
Var log1p(const Argument& x) {
  return apply(log1p_op(), {x})[0];
}
Var sin(const Argument& x) {
  return apply(sin_op(), {x})[0];
}
Var cos(const Argument& x) {
  return apply(cos_op(), {x})[0];
}
Var tanh(const Argument& x) {
  return apply(tanh_op(), {x})[0];
}
Var erf(const Argument& x) {
  return apply(erf_op(), {x})[0];
}
Var sigmoid(const Argument& x) {
  return apply(sigmoid_op(), {x})[0];
}
Var relu(const Argument& x) {
  return apply(relu_op(), {x})[0];
}
Var silu(const Argument& x) {
  return apply(silu_op(), {x})[0];
}
Var softplus(const Argument& x) {
  return apply(softplus_op(), {x})[0];
}
Var gelu(const Argument& x, const std::string& approximate) {
  return apply(gelu_op(), {x}, {{"approximate", approximate}})[0];
}

void list_functions(OpTable& table) {
  for (const Op* op :
       {&sqrt_op(), &rsqrt_op(), &exp_op(), &expm1_op(), &log_op(), &log1p_op(), &sin_op(), &cos_op(), &tanh_op(),
        &erf_op(), &sigmoid_op(), &relu_op(), &silu_op(), &softplus_op(), &gelu_op(), &gelu_grad_op()})
    table.add(*op);
  add_gelu_rules(table);
}

}  // namespace xtape
