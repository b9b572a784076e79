/// The element types of safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// How the file's elements become ours.
struct Stored {
  std::size_t bytes;  ///< An element in the file.
  Dtype dtype;        ///< What it becomes.
  /// Null where the two are the same bytes.
  void (*convert)(const std::byte* from, void* to, std::int64_t count);
};

/// Null where xtape does not know the name.
const Stored* stored_type(const std::string& name);
/// The name of the type that keeps the dtype.
const char* stored_name(Dtype dtype);

}  // namespace xtape
