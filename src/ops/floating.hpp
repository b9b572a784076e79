/// Helpers shared by the float ops.
#pragma once

#include <string>

#include "xtape/op/op.hpp"

namespace xtape {

/// Calls f(T{}), where T is the C++ type of `dtype`, float32 or float64.
template <class F>
auto with_floating(Dtype dtype, const F& f) {
  return dtype == Dtype::float64 ? f(double{}) : f(float{});
}

/// The memory of an input or output, as a pointer to its elements.
template <class T>
const T* in(const KernelArguments& arguments, std::size_t input) {
  return static_cast<const T*>(arguments.in[input]);
}
template <class T>
T* out(const KernelArguments& arguments, std::size_t output) {
  return static_cast<T*>(arguments.out[output]);
}

/// The attribute "axis" of `call`, counted from the front. Throws ShapeError if it is out of range.
inline std::size_t axis_of(const Call& call) {
  return normal_axis(call.integer("axis"), call.shape(0).size());
}

/// Throws ShapeError unless input number `input` has shape `wanted`, which `why` explains.
inline void require_shape(const Call& call, std::size_t input, const Shape& wanted, const std::string& why) {
  if (call.shape(input) != wanted)
    throw ShapeError("'" + call.op.inputs[input].name + "' of shape " + to_string(call.shape(input)) +
                     " must have shape " + to_string(wanted) + ", " + why);
}

/// `shape` without its last axis. Throws ShapeError if it has no axes.
inline Shape without_last(const Shape& shape) {
  if (shape.empty()) throw ShapeError("needs at least one axis, received an array of shape ()");
  Shape rest = shape;
  rest.erase(rest.size() - 1);
  return rest;
}

}  // namespace xtape
