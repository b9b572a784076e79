/// Dispatches on the element type of an array.
#pragma once

#include <cstdint>
#include <type_traits>

#include "xtape/array.hpp"

namespace xtape {

/// Returns the numbers of an array in blocks as float32. The view must be contiguous and begin with the first block.
Array numbers_of_blocks(const ArrayView& blocks);

/// Calls visit(elements), where `elements` points to the elements of an Array or ArrayView with their type. The
/// elements of an array in blocks are decoded before, so they can only be read.
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
  if constexpr (std::is_const_v<A> || std::is_same_v<A, ArrayView>)
    if (is_block(array.dtype())) {
      const Array numbers = numbers_of_blocks(array);
      return visit(numbers.as<float>());
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
