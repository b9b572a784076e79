/// A call of an op, the argument of the op's functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// What the arguments of an op's functions have in common: the attributes of a call, complete with defaults, in the
/// order of the op's specs. The functions throw Error if the attribute is absent or has another type.
struct CallAttributes {
  const Attributes& attributes;

  template <class T>
  const T& get(std::string_view name) const {
    return attributes.get<T>(name);
  }
  bool flag(std::string_view name) const { return get<bool>(name); }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  /// Of type `number`. An attribute of this type is always a double.
  double number(std::string_view name) const { return get<double>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
};

/// A call of an op: its attributes, and the types of its inputs and outputs. The references are valid only while the
/// function that receives the call runs. A kernel must therefore copy the data that it needs.
struct OpCall : CallAttributes {
  const Op& op;
  std::vector<ValueType> inputs = {};  ///< One per operand. Shorter if trailing optional inputs are omitted.
  SharedList<ValueType> outputs = {};  ///< Empty while Op::shape or FusionRule::refuses runs.
  const Tape* body = nullptr;          ///< Null if the node has no body.
  Site site = {};                      ///< Empty while Op::shape or FusionRule::refuses runs.

  const Shape& shape(std::size_t input) const { return inputs[input].shape; }
  Dtype dtype(std::size_t input) const { return inputs[input].dtype; }
  /// The value of an attribute of type `element`. Throws DtypeError if the value does not fit `dtype`.
  Literal element(std::string_view name, Dtype dtype) const {
    const Literal number = attributes.number(name);
    require_fits(number, dtype, name);
    return number;
  }
};

}  // namespace xtape
