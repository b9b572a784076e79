/// The header of a safetensors file: an 8-byte length, then JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/files.hpp"
#include "xtape/array.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

// The element types of safetensors files.

/// Converts `count` elements.
using Conversion = void (*)(const std::byte* from, void* to, std::int64_t count);

/// An element type of a file, and its conversion to a dtype.
struct Stored {
  std::size_t bytes;   ///< The size of an element in the file; 1 for a block format.
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

/// An array as described in the header, after all checks.
struct Described {
  std::string name;
  const Stored* stored = nullptr;
  Shape shape;
  std::uint64_t first = 0, last = 0;      ///< The range [first, last) of bytes, counted from the end of the header.
  std::optional<std::uint64_t> checksum;  ///< The checksum of these bytes (encodings.hpp), if the file has one.
  std::vector<std::int64_t> order;        ///< See ArrayFile::Entry.
};

/// The prefix of the metadata keys of orders. The name of the array follows the prefix, and the value is "1 0".
inline constexpr const char* order_key = "order:";

struct SafetensorsHeader {
  std::vector<Described> arrays;  ///< In the order of the header.
  Named<std::string> metadata;    ///< Without the checksums.
  std::uint64_t elements = 0;     ///< The byte of the file at which the header ends and the elements begin.
};

/// Reads and checks the header of `file`, in time linear in its length. Throws FileError with the name `path`.
SafetensorsHeader read_header(const OpenFile& file, const std::string& path);

/// Returns the JSON header for a file with these arrays, without the 8-byte length. `checksums` are those of the
/// arrays, in order. Throws FileError, with the name `path`, if a name or a metadata value is not UTF-8, if an array
/// name or a metadata key occurs twice, or if an array has the reserved name "__metadata__". The length of the header
/// does not depend on the checksums.
std::string header_of(const std::vector<ArrayFile::Entry>& entries, const std::vector<std::uint64_t>& checksums,
                      const std::vector<std::pair<std::string, std::string>>& metadata, const std::string& path);

}  // namespace xtape
