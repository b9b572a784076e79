/// Helpers shared by the float ops.
#pragma once

#include <string>

#include "xtape/op/op.hpp"

namespace xtape {

/// The attribute "axis" of `call`, counted from the front. Throws ShapeError if it is out of range.
inline std::size_t axis_of(const OpCall& call) {
  return normal_axis(call.integer("axis"), call.shape(0).size());
}

/// Throws ShapeError unless input number `input` has shape `wanted`, which `why` explains.
inline void require_shape(const OpCall& call, std::size_t input, const Shape& wanted, const std::string& why) {
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
