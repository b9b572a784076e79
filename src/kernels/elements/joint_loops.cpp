// Products that are added or subtracted. Two loops would write each product to memory and read it again.
//
// The product is rounded as in a loop of its own. Another plan, which keeps the product, therefore has the same bits.
#include "kernels/elements/element_loops.hpp"
#include "kernels/elements/elementwise.hpp"

namespace xtape {

namespace {
template <class F>
TileFunction made(const JointForm& form, const F& f) {
  return with_floating(form.dtype, [&](auto scalar) {
    using T = decltype(scalar);
    return form.single ? loop_over<T, Single<T>, Each<T>, Each<T>>(f) : loop<T, T, T, T>(f);
  });
}
}  // namespace

TileFunction make_joint_loop(const JointForm& form) {
  if (form.first != "mul" || !is_floating(form.dtype) || is_half(form.dtype)) return {};
  if (form.then == "add") return made(form, [](auto a, auto b, auto c) { return a * b + c; });
  if (form.then != "sub") return {};
  return form.operand == 0 ? made(form, [](auto a, auto b, auto c) { return a * b - c; })
                           : made(form, [](auto a, auto b, auto c) { return c - a * b; });
}

}  // namespace xtape
