/// The header of a safetensors file: an 8-byte length, then JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "files.hpp"
#include "stored_types.hpp"

namespace xtape {

/// An array as the header describes it, after all checks.
struct Described {
  std::string name;
  const Stored* stored = nullptr;
  Shape shape;
  std::uint64_t first = 0, last = 0;      ///< Bytes after the header.
  std::optional<std::uint64_t> checksum;  ///< Of these bytes, as checksum.hpp makes it, where the file has it.
};

struct SafetensorsHeader {
  std::vector<Described> arrays;  ///< In the order of the header.
  std::uint64_t elements = 0;     ///< The byte of the file behind the header.
};

/// Reads and checks the header of `file`, in time linear in its length. Throws FileError, naming `path`.
SafetensorsHeader read_header(const OpenFile& file, const std::string& path);

/// What stands before the elements of `store`, `checksums` being those of its arrays in turn. Throws FileError, naming
/// `path`, where a name is not UTF-8.
std::string header_of(const Store& store, const std::vector<std::uint64_t>& checksums,
                      const std::vector<std::pair<std::string, std::string>>& metadata, const std::string& path);

}  // namespace xtape
