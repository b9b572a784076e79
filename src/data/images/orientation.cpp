// Turns images as their Exif block specifies.
#include <algorithm>

#include "data/images/image_files.hpp"

namespace xtape {

int exif_orientation(std::string_view exif) {
  constexpr std::size_t orientation_tag = 0x112, short_type = 3;
  if (exif.size() < 8) return 1;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | static_cast<std::uint8_t>(exif[exif[0] == 'M' ? at + i : at + bytes - 1 - i]);
    return value;
  };
  const std::size_t first = number(4, 4);
  if (first > exif.size() - 2) return 1;
  const std::size_t entries = std::min(number(first, 2), (exif.size() - first - 2) / 12);
  for (std::size_t at = first + 2; at < first + 2 + 12 * entries; at += 12)
    if (number(at, 2) == orientation_tag && number(at + 2, 2) == short_type && number(at + 8, 2) <= 8)
      return std::max<int>(1, static_cast<int>(number(at + 8, 2)));
  return 1;
}

Interleaved turned(Interleaved image, int orientation) {
  if (orientation == 1) return image;
  const auto [channels, height, width] = image.shape;
  const bool transposes = orientation >= 5;
  Interleaved made;
  made.shape = {channels, transposes ? width : height, transposes ? height : width};
  made.pixels.reserve(image.pixels.size());
  for (std::int64_t i = 0; i < made.shape.height; ++i)
    for (std::int64_t j = 0; j < made.shape.width; ++j) {
      std::int64_t row = transposes ? j : i, column = transposes ? i : j;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) row = height - 1 - row;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) column = width - 1 - column;
      const std::uint8_t* pixel = image.pixels.data() + (row * width + column) * channels;
      made.pixels.insert(made.pixels.end(), pixel, pixel + channels);
    }
  return made;
}

}  // namespace xtape
