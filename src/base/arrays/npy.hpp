/// The reader behind load_npy. It reads bytes from any source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// A sequence of bytes of known length. `read` copies `count` bytes, starting at byte `offset`. Callers request only
/// bytes that exist.
struct NpyBytes {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t offset, void* to, std::size_t count)> read;
};

struct Stored;

/// The header of an .npy file.
struct NpyHeader {
  const Stored* stored = nullptr;  ///< The type of the elements in the file.
  Shape shape;
  std::uint64_t elements = 0;  ///< The byte at which the elements begin.
};

/// Reads a header, and checks that the elements of its shape follow. Throws FileError as load_npy does.
NpyHeader read_npy_header(const NpyBytes& bytes, const std::string& where);

/// Returns the array of an .npy file with these bytes. Throws FileError as load_npy does. `where` names the file in
/// messages.
Array read_npy(const NpyBytes& bytes, const std::string& where);

}  // namespace xtape
