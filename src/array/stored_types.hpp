/// The element types of safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// Converts `count` elements.
using Conversion = void (*)(const std::byte* from, void* to, std::int64_t count);

/// An element type of a file, and its conversion to a dtype.
struct Stored {
  std::size_t bytes;  ///< The size of an element in the file.
  Dtype dtype;        ///< The dtype of the array that is read.
  Conversion convert;  ///< Null if both types have the same bytes.
};

/// The conversion of a half to a wider float dtype; null for other dtypes.
Conversion widening(Dtype from, Dtype to);

/// The type of that name in a safetensors header, such as "F32"; null if xtape does not support it.
const Stored* stored_type(const std::string& name);
/// The name of the type that arrays of this dtype are saved as.
const char* stored_name(Dtype dtype);

}  // namespace xtape
