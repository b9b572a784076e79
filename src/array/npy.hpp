/// The reader behind load_npy, for bytes from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// Bytes of a known number. `read` copies `count` of them, starting at byte `offset`; it is only asked for bytes that
/// exist.
struct NpyBytes {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t offset, void* to, std::size_t count)> read;
};

/// The array of an .npy file with these bytes. Throws FileError, as load_npy does; `where` names the file in messages.
Array read_npy(const NpyBytes& bytes, const std::string& where);

}  // namespace xtape
