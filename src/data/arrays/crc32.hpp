/// The checksum that identifies a tokenizer's file.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

namespace xtape {

inline std::uint32_t crc32_of(const std::string& bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace xtape
