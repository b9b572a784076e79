/// A call of an op: what its row is told.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 2
#error "this layer of xtape may not see the tape layer"
#endif

#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// A call of an op, as its shape rule and the rest of its row see it.
struct Call {
  const Op& op;
  const Attributes& attributes;
  std::vector<ValueType> inputs;
  SharedList<ValueType> outputs;   ///< Empty while the shape rule runs.
  const Tape* body = nullptr;      ///< Null where the node has none.
  Site site;

  const Shape& shape(std::size_t input) const { return inputs[input].shape; }
  Dtype dtype(std::size_t input) const { return inputs[input].dtype; }
  template <class T>
  const T& get(const std::string& name) const {
    return attributes.get<T>(name);
  }
  bool flag(const std::string& name) const { return get<bool>(name); }
  std::int64_t integer(const std::string& name) const { return get<std::int64_t>(name); }
  double number(const std::string& name) const { return get<double>(name); }
  /// An attribute of type `element`. Throws DtypeError unless it fits the dtype.
  Literal element(const std::string& name, Dtype dtype) const {
    const Literal number = attributes.number(name);
    require_fits(number, dtype, name);
    return number;
  }
  const std::string& text(const std::string& name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& integers(const std::string& name) const {
    return get<std::vector<std::int64_t>>(name);
  }
};

}  // namespace xtape
