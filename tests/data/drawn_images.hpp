/// Images that the tests of several files draw.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "xtape/images.hpp"

/// Checks that a text contains another.
#define CHECK_HAS(text, part)                     \
  do {                                            \
    const std::string found = text;               \
    CAPTURE(found);                               \
    CHECK(found.find(part) != std::string::npos); \
  } while (false)

namespace images {

using namespace xtape;
using Bytes = std::vector<std::uint8_t>;

/// 3 x 2 pixels: red, green, blue; 10 … 90. Written by zlib and nothing else.
inline const std::string png_in_hex =
    "89504e470d0a1a0a0000000d49484452000000030000000208020000001216f14d000000174944415478da63f8cfc0c0"
    "00c15c22721a46366e015100335904c05c9be18c0000000049454e44ae426082"
    "";

inline std::string png() {
  std::string bytes;
  for (std::size_t i = 0; i < png_in_hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(png_in_hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// `count` images of 1 x 4 x 5 bytes, image i with label i % 3. Byte k of image i is i + k + 1.
inline Images numbered(std::size_t count) {
  Images images{{1, 4, 5}, {}, {}, {"a", "b", "c"}, {"numbered"}};
  for (std::size_t i = 0; i < count; ++i) {
    images.labels.push_back(static_cast<std::int64_t>(i % 3));
    for (std::size_t k = 0; k < 20; ++k) images.pixels.push_back(static_cast<std::uint8_t>(i + k + 1));
  }
  return images;
}

}  // namespace images
