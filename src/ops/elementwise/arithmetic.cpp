// Elementwise arithmetic.
#include "ops/elementwise/arithmetic.hpp"

#include <algorithm>
#include <cmath>

#include "ops/reductions/reductions.hpp"
#include "tape/graph.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
const Op& add_op() {
  static const Op entry = [] {
    Op op = binary("add", "a + b. Integers wrap.", [](const GradientCall& call) {
      const Var g = call.cotangent();
      return per_operand(
          call, [&] { return g; }, [&] { return g; });
    });
    op.lowering.adds = true;
    return op;
  }();
  return entry;
}

const Op& sub_op() {
  static const Op entry = binary("sub", "a - b. Integers wrap.", [](const GradientCall& call) {
    const Var g = call.cotangent();
    return per_operand(
        call, [&] { return g; }, [&] { return -g; });
  });
  return entry;
}

const Op& mul_op() {
  static const Op entry = [] {
    Op op = binary("mul", "a * b. Integers wrap.", [](const GradientCall& call) {
      const Var g = call.cotangent();
      return per_operand(
          call, [&] { return g * call.inputs[1]; }, [&] { return g * call.inputs[0]; });
    });
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) {
      const Var squares = inputs[0].id() == inputs[1].id() ? square_of_root(inputs[0]) : Var();
      return squares.empty() ? record_call(tape, self, inputs, attributes) : Vars{squares};
    };
    return op;
  }();
  return entry;
}

const Op& div_op() {
  static const Op entry = [] {
    Op op = binary("div", "a / b, true division. Integers are first cast to the tape's default dtype.",
                   [](const GradientCall& call) {
                     const Var g = call.cotangent() / call.inputs[1];
                     return per_operand(
                         call, [&] { return g; }, [&] { return -(g * call.outputs[0]); });
                   });
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) {
      Vars floats = inputs;
      for (Var& input : floats)
        if (is_integer(input.dtype())) input = cast(input, tape.default_dtype());
      return record_call(tape, self, floats, attributes);
    };
    return op;
  }();
  return entry;
}

/// Returns the share of the cotangent `g` for one input of maximum or minimum: nothing where it `loses`, half where
/// there is a `tie`, and all of it elsewhere. Where an input is NaN, both masks are false, so both inputs get all of
/// the cotangent.
Var winners_share(const Var& g, const Var& tie, const Var& loses) {
  return where(loses, 0, where(tie, g * 0.5, g));
}

const Op& maximum_op() {
  static const Op entry = binary(
      "maximum",
      "The larger of a and b; NaN if one of them is NaN. Where they are equal, each gets half of the gradient.",
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        const Var &a = call.inputs[0], &b = call.inputs[1];
        return per_operand(
            call, [&] { return winners_share(g, a == b, a < b); }, [&] { return winners_share(g, a == b, a > b); });
      });
  return entry;
}

const Op& minimum_op() {
  static const Op entry = binary(
      "minimum",
      "The smaller of a and b; NaN if one of them is NaN. Where they are equal, each gets half of the gradient.",
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        const Var &a = call.inputs[0], &b = call.inputs[1];
        return per_operand(
            call, [&] { return winners_share(g, a == b, a > b); }, [&] { return winners_share(g, a == b, a < b); });
      });
  return entry;
}

/// Returns the value of a float literal, or NaN for any other var.
double known_scalar(const Var& x) {
  const Node& node = x.node();
  if (!is_literal(node)) return std::nan("");
  if (node.storage.dtype() == Dtype::float32) return node.storage.as<float>()[0];
  if (node.storage.dtype() == Dtype::float64) return node.storage.as<double>()[0];
  return std::nan("");
}

const Op& pow_op() {
  static const Op entry = [] {
    Op op = binary(
        "pow",
        "a ** b. The gradient with respect to a is b * a ** (b - 1), and 0 where b is 0. The gradient with respect to "
        "b is a ** b * log(a), and 0 where a is 0 and b is not negative. If b is a number and a is a float, an "
        "exponent of 1 records nothing, and 2, 0.5 and -0.5 are recorded as square, sqrt and rsqrt. "
        "Integers wrap; an integer to a negative power is rounded towards 0, and 0 to a negative power is 0.",
        [](const GradientCall& call) {
          const Var g = call.cotangent();
          const Var &a = call.inputs[0], &b = call.inputs[1];
          const auto to_a = [&] {
            const Var slope = b * pow(a, b - 1);
            const double exponent = known_scalar(b);
            if (exponent == 0) return zeros_like(call.outputs[0]);
            return g * (std::isnan(exponent) ? where(b == 0, 0, slope) : slope);
          };
          const auto to_b = [&] {
            const Var flat = (a == 0) & (b >= 0);
            return g * where(flat, 0, call.outputs[0] * log(where(flat, 1, a)));
          };
          return per_operand(call, to_a, to_b);
        });
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) -> Vars {
      const double exponent = known_scalar(inputs[1]);
      if (exponent == 1) return {inputs[0]};
      if (exponent == 2) return {square(inputs[0])};
      if (exponent == 0.5) return {sqrt(inputs[0])};
      if (exponent == -0.5) return {rsqrt(inputs[0])};
      return record_call(tape, self, inputs, attributes);
    };
    return op;
  }();
  return entry;
}

const Op& neg_op() {
  static const Op entry =
      unary("neg", "-x. Integers wrap.", [](const GradientCall& call) { return Vars{-call.cotangent()}; });
  return entry;
}

const Op& abs_op() {
  static const Op entry = unary("abs", "|x|. The gradient at 0 is 0. Integers wrap.",
                                [](const GradientCall& call) { return Vars{call.cotangent() * sign(call.inputs[0])}; });
  return entry;
}

const Op& sign_op() {
  static const Op entry = unary("sign", "-1, 0 or 1 where x is negative, zero or positive. NaN stays NaN.", nullptr);
  return entry;
}

const Op& floor_op() {
  static const Op entry = unary("floor", "The largest whole number not above x. Integers are unchanged.", nullptr);
  return entry;
}

const Op& square_op() {
  static const Op entry = [] {
    Op op = unary("square", "x * x. Integers wrap.",
                  [](const GradientCall& call) { return Vars{call.cotangent() * (call.inputs[0] * 2)}; });
    op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * call.inputs[0]}; };
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) {
      const Var squares = square_of_root(inputs[0]);
      return squares.empty() ? record_call(tape, self, inputs, attributes) : Vars{squares};
    };
    return op;
  }();
  return entry;
}
}  // namespace

Var add(const Operand& a, const Operand& b) {
  return apply(add_op(), {a, b})[0];
}
Var sub(const Operand& a, const Operand& b) {
  return apply(sub_op(), {a, b})[0];
}
Var mul(const Operand& a, const Operand& b) {
  return apply(mul_op(), {a, b})[0];
}
Var div(const Operand& a, const Operand& b) {
  return apply(div_op(), {a, b})[0];
}
Var pow(const Operand& a, const Operand& b) {
  return apply(pow_op(), {a, b})[0];
}
Var maximum(const Operand& a, const Operand& b) {
  return apply(maximum_op(), {a, b})[0];
}
Var minimum(const Operand& a, const Operand& b) {
  return apply(minimum_op(), {a, b})[0];
}
Var neg(const Argument& x) {
  return apply(neg_op(), {x})[0];
}
Var abs(const Argument& x) {
  return apply(abs_op(), {x})[0];
}
Var sign(const Argument& x) {
  return apply(sign_op(), {x})[0];
}
Var square(const Argument& x) {
  return apply(square_op(), {x})[0];
}
Var floor(const Argument& x) {
  return apply(floor_op(), {x})[0];
}

void list_arithmetic(OpTable& table) {
  for (const Op* op : {&add_op(), &sub_op(), &mul_op(), &div_op(), &pow_op(), &maximum_op(), &minimum_op(), &neg_op(),
                       &abs_op(), &sign_op(), &square_op(), &floor_op()})
    table.add(*op);
}

}  // namespace xtape
