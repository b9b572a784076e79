// Floor division and its remainder, as in Python.
#include "ops/elementwise/arithmetic.hpp"

namespace xtape {

namespace {
const Op& floor_divide_op() {
  static const Op entry = [] {
    Op op =
        binary("floor_divide",
               "The largest whole number not above a / b, as Python's `//`; exact for integers. Integers divided by "
               "0 give 0, as in NumPy; floats divided by 0 give inf, -inf or NaN. No gradient flows.",
               nullptr);
    op.differentiable = false;
    return op;
  }();
  return entry;
}

const Op& mod_op() {
  static const Op entry =
      binary("mod",
             "a - floor(a / b) * b: the remainder, with the sign of b, as in Python. Modulo 0, integers give 0 and "
             "floats NaN.",
             [](const GradientCall& call) {
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
