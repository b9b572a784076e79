/// The header of a safetensors file: an 8-byte length, then JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/files.hpp"
#include "base/arrays/stored_types.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

/// An array as described in the header, after all checks.
struct Described {
  std::string name;
  const Stored* stored = nullptr;
  Shape shape;
  std::uint64_t first = 0, last = 0;      ///< The range [first, last) of bytes, counted from the end of the header.
  std::optional<std::uint64_t> checksum;  ///< The checksum of these bytes (checksum.hpp), if the file has one.
};

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
