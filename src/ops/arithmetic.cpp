// Arithmetic, element by element.
#include <algorithm>
#include <cmath>

#include "elementwise.hpp"
#include "rows.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
using GradientRule = Vars (*)(const GradientCall&);
using CanonicalRule = TermId (*)(const CanonicalCall&);

/// `rule`, for floats alone: integers wrap, so that sums and products of theirs stay as they stand.
auto of_floats(CanonicalRule rule) {
  return
      [rule](const CanonicalCall& call) { return is_floating(call.type().dtype) ? rule(call) : call.as_it_stands(); };
}

template <class F>
Op binary(const char* name, const char* doc, const F& f, GradientRule gradient, CanonicalRule canonical = nullptr) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"a"}, {"b"}};
  op.shape = same_number_dtype;
  op.lowering.tile = [f](const KernelCall& call) { return binary_loop(call.dtype(0), f); };
  op.gradient = gradient;
  if (canonical != nullptr) op.canonical = of_floats(canonical);
  op.lowering.overwrites = {0, 1};
  return op;
}

template <class F>
Op unary(const char* name, const char* doc, const F& f, GradientRule gradient, CanonicalRule canonical = nullptr) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x"}};
  op.shape = same_number_dtype;
  op.lowering.tile = [f](const KernelCall& call) { return unary_loop(call.dtype(0), f); };
  op.gradient = gradient;
  op.differentiable = gradient != nullptr;
  if (canonical != nullptr) op.canonical = of_floats(canonical);
  op.lowering.overwrites = {0};
  return op;
}

/// `f`, computed so that integers wrap.
template <class F>
auto wrapping(const F& f) {
  return [f](auto... x) {
    using T = std::common_type_t<decltype(x)...>;
    return static_cast<T>(f(static_cast<Wrapping<T>>(x)...));
  };
}

/// The gradients of a broadcasting binary op: `to_a` and `to_b` record them in the shape of the output.
template <class A, class B>
Vars per_operand(const GradientCall& call, const A& to_a, const B& to_b) {
  Vars gradients(2);
  if (call.needs[0]) gradients[0] = sum_to(to_a(), call.inputs[0].shape());
  if (call.needs[1]) gradients[1] = sum_to(to_b(), call.inputs[1].shape());
  return gradients;
}

const Op& add_op() {
  static const Op row = binary(
      "add", "a + b. Integers wrap.", wrapping([](auto a, auto b) { return a + b; }),
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        return per_operand(
            call, [&] { return g; }, [&] { return g; });
      },
      [](const CanonicalCall& call) { return call.terms.sum(call.inputs[0], 1, call.inputs[1], 1, call.type()); });
  return row;
}

const Op& sub_op() {
  static const Op row = binary(
      "sub", "a - b. Integers wrap.", wrapping([](auto a, auto b) { return a - b; }),
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        return per_operand(
            call, [&] { return g; }, [&] { return -g; });
      },
      [](const CanonicalCall& call) { return call.terms.sum(call.inputs[0], 1, call.inputs[1], -1, call.type()); });
  return row;
}

const Op& mul_op() {
  static const Op row = binary(
      "mul", "a * b. Integers wrap.", wrapping([](auto a, auto b) { return a * b; }),
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        return per_operand(
            call, [&] { return g * call.inputs[1]; }, [&] { return g * call.inputs[0]; });
      },
      [](const CanonicalCall& call) { return call.terms.product(call.inputs[0], call.inputs[1], call.type()); });
  return row;
}

const Op& div_op() {
  static const Op row = [] {
    const auto quotient = [](auto a, auto b) { return a / b; };
    Op op = binary(
        "div", "a / b, true division: integers are cast to the tape's default dtype first.", quotient,
        [](const GradientCall& call) {
          const Var g = call.cotangent() / call.inputs[1];
          return per_operand(
              call, [&] { return g; }, [&] { return -(g * call.outputs[0]); });
        },
        [](const CanonicalCall& call) {
          return call.terms.product(call.inputs[0], call.terms.power(call.inputs[1], -1), call.type());
        });
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) {
      Vars floats = inputs;
      for (Var& input : floats)
        if (is_integer(input.dtype())) input = cast(input, tape.default_dtype());
      return record_call(tape, self, floats, attributes);
    };
    op.lowering.tile = [quotient](const KernelCall& call) {
      return call.dtype(0) == Dtype::float64 ? loop_tile<double, double, double>(quotient)
                                             : loop_tile<float, float, float>(quotient);
    };
    return op;
  }();
  return row;
}

/// Half of the cotangent where both are equal, all of it where `x` wins (or is NaN), none where it `loses`.
Var winners_share(const Var& g, const Var& tie, const Var& loses) {
  return where(loses, 0, where(tie, g * 0.5, g));
}

const Op& maximum_op() {
  static const Op row = binary(
      "maximum", "The greater of a and b. NaN wins; ties send half of the gradient to each.",
      [](auto a, auto b) { return a > b || a != a ? a : b; },
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        const Var &a = call.inputs[0], &b = call.inputs[1];
        return per_operand(
            call, [&] { return winners_share(g, a == b, a < b); }, [&] { return winners_share(g, a == b, a > b); });
      });
  return row;
}

const Op& minimum_op() {
  static const Op row = binary(
      "minimum", "The lesser of a and b. NaN wins; ties send half of the gradient to each.",
      [](auto a, auto b) { return a < b || a != a ? a : b; },
      [](const GradientCall& call) {
        const Var g = call.cotangent();
        const Var &a = call.inputs[0], &b = call.inputs[1];
        return per_operand(
            call, [&] { return winners_share(g, a == b, a > b); }, [&] { return winners_share(g, a == b, a < b); });
      });
  return row;
}

/// The quotient of integers, rounded down. Division by zero gives 0, as NumPy does; -1 must not reach the processor's
/// division, where the lowest integer would trap: its negative wraps, as products of integers do.
template <class T>
T floor_quotient(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  if (b == T{-1}) return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(a));
  const T quotient = static_cast<T>(a / b);
  return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
}

/// As CPython divides floats: a - remainder is a multiple of b but for rounding, so that the quotient is whole but for
/// it.
struct FloorQuotient {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      const T r = std::fmod(a, b);
      T quotient = (a - r) / b;
      if (r != 0 && (r < 0) != (b < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T{0}, a / b);
      const T down = std::floor(quotient);
      return quotient - down > T{0.5} ? down + 1 : down;
    } else {
      return floor_quotient(a, b);
    }
  }
};

const Op& floor_divide_op() {
  static const Op row = [] {
    Op op = binary("floor_divide",
                   "The greatest whole number that is not greater than a / b, as Python's `//`, of integers exactly. "
                   "Integers divided by 0 give 0, as in NumPy; floats inf or NaN. No gradient flows.",
                   FloorQuotient{}, nullptr);
    op.differentiable = false;
    return op;
  }();
  return row;
}

struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      if (r == 0) return std::copysign(r, b);
      return (r < 0) != (b < 0) ? r + b : r;
    } else {
      // Division by zero gives 0, as NumPy does; by -1 always 0 too, and the lowest integer by -1 would trap.
      if (b == 0 || b == T{-1}) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
  }
};

const Op& mod_op() {
  static const Op row =
      binary("mod", "a - floor(a / b) * b: the remainder with the sign of b, as in Python. Integers modulo 0 give 0.",
             Remainder{}, [](const GradientCall& call) {
               const Var g = call.cotangent();
               return per_operand(
                   call, [&] { return g; }, [&] { return -(g * floor_divide(call.inputs[0], call.inputs[1])); });
             });
  return row;
}

struct Power {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) return a == 1 ? T{1} : a == T{-1} ? (b % 2 ? T{-1} : T{1}) : T{0};
      std::uint64_t result = 1, base = static_cast<std::uint64_t>(a);  // wraps like the products of integers
      for (auto e = static_cast<std::uint64_t>(b); e != 0; e >>= 1, base *= base)
        if (e & 1) result *= base;
      return static_cast<T>(result);
    }
  }
};

/// The value of a constant of one element, and NaN for anything else.
double known_scalar(const Var& x) {
  const Node& node = x.node();
  if (node.op != &constant_op() || node.storage.count() != 1) return std::nan("");
  if (node.storage.dtype() == Dtype::float32) return node.storage.as<float>()[0];
  if (node.storage.dtype() == Dtype::float64) return node.storage.as<double>()[0];
  return std::nan("");
}

const Op& pow_op() {
  static const Op row = [] {
    Op op = binary(
        "pow",
        "a ** b. The gradient towards a is b * a ** (b - 1), and 0 where b is 0; towards b it is a ** b * log(a), and "
        "0 "
        "where a is 0 and b is not negative. Literal exponents 2, 0.5 and -0.5 are recorded as square, sqrt and rsqrt. "
        "Integers to a negative power are rounded towards 0.",
        Power{},
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
        },
        [](const CanonicalCall& call) {
          const std::optional<double> exponent = call.terms.number_of(call.inputs[1]);
          return exponent && call.node.outputs[0] == call.terms[call.inputs[0]].type
                     ? call.terms.power(call.inputs[0], *exponent)
                     : call.as_it_stands();
        });
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) -> Vars {
      if (inputs[1].rank() == 0) {
        const double exponent = known_scalar(inputs[1]);
        if (exponent == 1) return {inputs[0]};
        if (exponent == 2) return {square(inputs[0])};
        if (exponent == 0.5) return {sqrt(inputs[0])};
        if (exponent == -0.5) return {rsqrt(inputs[0])};
      }
      return record_call(tape, self, inputs, attributes);
    };
    return op;
  }();
  return row;
}

const Op& neg_op() {
  static const Op row = unary(
      "neg", "-x.", wrapping([](auto x) { return -x; }),
      [](const GradientCall& call) { return Vars{-call.cotangent()}; },
      [](const CanonicalCall& call) { return call.terms.scaled(call.inputs[0], -1); });
  return row;
}

struct Magnitude {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(x);
    else
      return x < 0 ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x)) : x;
  }
};

const Op& abs_op() {
  static const Op row = unary("abs", "|x|. The gradient at 0 is 0.", Magnitude{},
                              [](const GradientCall& call) { return Vars{call.cotangent() * sign(call.inputs[0])}; });
  return row;
}

const Op& sign_op() {
  static const Op row = unary(
      "sign", "-1, 0 or 1, as x is negative, zero or positive. NaN stays NaN.",
      [](auto x) { return x != x ? x : static_cast<decltype(x)>((x > 0) - (x < 0)); }, nullptr);
  return row;
}

const Op& floor_op() {
  static const Op row = unary(
      "floor", "The greatest whole number that is not greater than x. Integers stay as they are.",
      [](auto x) {
        if constexpr (std::is_floating_point_v<decltype(x)>)
          return std::floor(x);
        else
          return x;
      },
      nullptr);
  return row;
}

const Op& square_op() {
  static const Op row = [] {
    Op op = unary(
        "square", "x * x.", wrapping([](auto x) { return x * x; }),
        [](const GradientCall& call) { return Vars{call.cotangent() * (call.inputs[0] * 2)}; },
        [](const CanonicalCall& call) { return call.terms.power(call.inputs[0], 2); });
    op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * call.inputs[0]}; };
    return op;
  }();
  return row;
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
Var floor_divide(const Operand& a, const Operand& b) {
  return apply(floor_divide_op(), {a, b})[0];
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
Var mod(const Operand& a, const Operand& b) {
  return apply(mod_op(), {a, b})[0];
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
  for (const Op* op : {&add_op(), &sub_op(), &mul_op(), &div_op(), &floor_divide_op(), &pow_op(), &maximum_op(),
                       &minimum_op(), &mod_op(), &neg_op(), &abs_op(), &sign_op(), &square_op(), &floor_op()})
    table.add(*op);
}

}  // namespace xtape
