/// Indices of elements in arrays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// Returns the index of an element, given its position in row-major order.
std::vector<std::int64_t> index_of(std::int64_t element, const Shape& shape);

/// "[1, 2]".
std::string index_text(const std::vector<std::int64_t>& index);

}  // namespace xtape
