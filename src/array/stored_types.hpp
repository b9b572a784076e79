/// The element types of safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// An element type of a file, and its conversion to a dtype.
struct Stored {
  std::size_t bytes;  ///< The size of an element in the file.
  Dtype dtype;        ///< The dtype of the array that is read.
  /// Converts `count` elements; null if both types have the same bytes.
  void (*convert)(const std::byte* from, void* to, std::int64_t count);
};

/// The type of that name in a safetensors header, such as "F32"; null if xtape does not support it.
const Stored* stored_type(const std::string& name);
/// The name of the type that arrays of this dtype are saved as.
const char* stored_name(Dtype dtype);

}  // namespace xtape
