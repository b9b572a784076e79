/// Reads arrays from .npz files, which are ZIP archives of .npy files.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

// The checksum that identifies a tokenizer's file.

inline std::uint32_t crc32_of(const std::string& bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Returns the array with this name from a file of less than 4 GiB that numpy.savez or numpy.savez_compressed has
/// written. Throws FileError if the file is damaged, or if it has no such array; the message names the file and lists
/// the arrays that it has. Errors of load_npy propagate.
Array read_npz(const std::string& path, const std::string& name);
/// Returns the names of the arrays of such a file. Throws FileError if the file is damaged.
std::vector<std::string> npz_names(const std::string& path);

}  // namespace xtape
