// Floor division and its remainder, as in Python.
#include <cmath>

#include "arithmetic.hpp"

namespace xtape {

namespace {
/// The quotient of integers, rounded down. Division by 0 gives 0, as in NumPy. Division by -1 is a negation that wraps:
/// the processor's division traps when it divides the smallest integer by -1.
template <class T>
T floor_quotient(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  if (b == T{-1}) return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(a));
  const T quotient = static_cast<T>(a / b);
  return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
}

/// Floats are divided as in CPython: a - remainder is a multiple of b up to rounding, so its quotient by b is within
/// rounding of a whole number, to which it is then rounded.
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
  static const Op entry = [] {
    Op op =
        binary("floor_divide",
               "The largest whole number not above a / b, as Python's `//`; exact for integers. Integers divided by "
               "0 give 0, as in NumPy; floats divided by 0 give inf, -inf or NaN. No gradient flows.",
               FloorQuotient{}, nullptr);
    op.differentiable = false;
    return op;
  }();
  return entry;
}

struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      if (r == 0) return std::copysign(r, b);
      return (r < 0) != (b < 0) ? r + b : r;
    } else {
      // Modulo 0 gives 0, as in NumPy. Modulo -1 is always 0, and the smallest integer modulo -1 would trap.
      if (b == 0 || b == T{-1}) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
  }
};

const Op& mod_op() {
  static const Op entry =
      binary("mod",
             "a - floor(a / b) * b: the remainder, with the sign of b, as in Python. Modulo 0, integers give 0 and "
             "floats NaN.",
             Remainder{}, [](const GradientCall& call) {
               const Var g = call.cotangent();
               return per_operand(
                   call, [&] { return g; }, [&] { return -(g * floor_divide(call.inputs[0], call.inputs[1])); });
             });
  return entry;
}
}  // namespace

Var floor_divide(const Operand& a, const Operand& b) {
  return apply(floor_divide_op(), {a, b})[0];
}
Var mod(const Operand& a, const Operand& b) {
  return apply(mod_op(), {a, b})[0];
}

void list_division(OpTable& table) {
  table.add(floor_divide_op());
  table.add(mod_op());
}

}  // namespace xtape
