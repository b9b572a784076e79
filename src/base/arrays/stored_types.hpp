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
  std::size_t bytes;   ///< The size of an element in the file.
  Dtype dtype;         ///< The dtype of the array that is read.
  Conversion convert;  ///< Null if the bytes of both types are the same.
};

/// Returns the conversion of bfloat16 or float16 to a wider float dtype, or null for other dtypes.
Conversion widening(Dtype from, Dtype to);

/// Returns the type with this name in a safetensors header, such as "F32", or null if xtape does not support it.
const Stored* stored_type(const std::string& name);
/// Returns the names of all types that stored_type knows, separated by commas.
std::string stored_names();
/// Returns the name of the type in which arrays of this dtype are saved.
const char* stored_name(Dtype dtype);

}  // namespace xtape
