/// Ops and recordings that the gradients and expansions of several ops share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/messages/wording.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

// Finds the kernels and tile functions that the kernel layer has under the name of an op.

inline KernelForm form_of(const KernelCall& call, const Attributes& attributes) {
  return {call.inputs, call.outputs, attributes,     call.in,   call.out,
          call.fixed,  call.threads, call.precision, call.seed, call.site.key};
}

/// Returns the kernel of the call's op, made with these attributes: the attributes of the call, or attributes that the
/// op has derived from them.
inline Kernel kernel_of(const KernelCall& call, const Attributes& attributes) {
  return kernels().make(call.op.name, form_of(call, attributes));
}
// For Lowering::kernel and Lowering::tile:
inline Kernel kernel_by_name(const KernelCall& call) {
  return kernel_of(call, call.attributes);
}
inline TileFunction tile_by_name(const KernelCall& call) {
  return kernels().make_tile(call.op.name, form_of(call, call.attributes));
}

// Shared helpers of the float ops.

/// Returns the attribute "axis" of `call`, counted from the front. Throws ShapeError if it is out of range.
inline std::size_t axis_of(const OpCall& call) {
  return normal_axis(call.integer("axis"), call.shape(0).size());
}

/// Throws ShapeError if input number `input` does not have shape `wanted`. `why` explains this shape.
inline void require_shape(const OpCall& call, std::size_t input, const Shape& wanted, const std::string& why) {
  if (call.shape(input) != wanted)
    throw ShapeError("'" + call.op.inputs[input].name + "' of shape " + to_string(call.shape(input)) +
                     " must have shape " + to_string(wanted) + ", " + why);
}

/// Throws Error if the text attribute `name` is not one of the words.
inline void require_word(const OpCall& call, const char* name, std::initializer_list<const char*> words) {
  if (contains(words, call.text(name))) return;
  const auto quoted = [](const char* word) { return "\"" + std::string(word) + "\""; };
  throw Error(name + (" \"" + call.text(name)) + "\" must be one of " + joined(words, quoted));
}

/// Returns `shape` without its last axis. Throws ShapeError if it has no axes.
inline Shape without_last(const Shape& shape) {
  if (shape.empty()) throw ShapeError("needs at least one axis, received an array of shape ()");
  Shape rest = shape;
  rest.erase(rest.size() - 1);
  return rest;
}

// The expansion of a call, for code that looks inside ops: players, derivatives, `vmap`.

/// Returns whether players can run the op directly on bfloat16, float16 and int8, because it only moves or casts
/// elements, or plays other ops.
bool runs_on_any_dtype(const Op& op);

/// Returns the result of Op::expand for the call, in the dtypes of its node. If the op computes with half-precision
/// arrays, its expansion computes in float32 and rounds the results, as the op's kernel would. In float16, squares of
/// numbers above 256 would be infinite.
Vars expansion(const ExpandCall& call);

/// Records x[..., first:last, ...] along an axis.
Var part_along(const Var& x, std::size_t axis, std::int64_t first, std::int64_t last);

/// The adjoint of broadcasting: sums `x` over the axes along which `shape` broadcasts to the shape of `x`.
Var sum_to(const Var& x, const Shape& shape);

/// Returns the largest element along `axis`, or 0 if it is -inf. The axis stays, with size 1. Code that computes exp(x)
/// subtracts this element from x first, which prevents overflow. No gradient flows through the element, because the
/// shift cancels.
Var finite_max(const Var& x, std::int64_t axis);
/// Returns log_softmax(x) and log sum exp(x), both along `axis`. In log sum exp(x), the axis stays, with size 1. For a
/// row of -inf, log sum exp(x) is 0.
std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis);

/// log(exp(x0) + exp(x1) + …), element by element and without overflow. Where all terms are -inf, the result is -inf
/// and its gradient 0. The result consists of elementwise ops, which fuse. To reduce the elements of one array along an
/// axis, use logsumexp, which uses the kernels of the reductions.
Var log_add_exp(const Vars& xs);

}  // namespace xtape
