/// Dispatches on the element type of an array.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// Calls visit(elements), where `elements` points to the elements of an Array or ArrayView with their type.
template <class A, class Visit>
decltype(auto) visit_elements(A& array, const Visit& visit) {
  switch (array.dtype()) {
    case Dtype::float32:
      return visit(array.template as<float>());
    case Dtype::float64:
      return visit(array.template as<double>());
    case Dtype::bfloat16:
      return visit(array.template as<bfloat16>());
    case Dtype::float16:
      return visit(array.template as<float16>());
    case Dtype::int32:
      return visit(array.template as<std::int32_t>());
    case Dtype::int64:
      return visit(array.template as<std::int64_t>());
    case Dtype::int8:
      return visit(array.template as<std::int8_t>());
    default:
      break;
  }
  return visit(array.template as<bool>());
}

/// Like visit_elements, but only for arrays of floats. Ignores other arrays.
template <class A, class Visit>
void visit_floats(A& array, const Visit& visit) {
  if (array.dtype() == Dtype::float32) visit(array.template as<float>());
  if (array.dtype() == Dtype::float64) visit(array.template as<double>());
  if (array.dtype() == Dtype::bfloat16) visit(array.template as<bfloat16>());
  if (array.dtype() == Dtype::float16) visit(array.template as<float16>());
}

}  // namespace xtape
