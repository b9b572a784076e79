/// Shared helpers of the float ops.
#pragma once

#include <initializer_list>
#include <string>

#include "base/messages/contains.hpp"
#include "base/messages/joined.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

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

}  // namespace xtape
