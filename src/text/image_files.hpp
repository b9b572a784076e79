/// The parts of reading image files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/images.hpp"

namespace xtape {

inline constexpr std::int64_t most_side = 1 << 16;  ///< The most pixels of an image in each direction.

/// Pixels as files have them: row by row, the channels of a pixel together.
struct Interleaved {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;
};

/// Throws FileError about an image.
[[noreturn]] void fail_image(const std::string& path, const std::string& message);
/// Throws FileError if a side is 0 or above `most_side`.
void check_sides(const ImageShape& shape, const std::string& path);
/// Throws Error unless the pixels are whole images of the shape.
void check_pixels(const Images& images);
/// Throws Error unless there are 1 or 3.
void check_channels(std::int64_t channels);
/// Makes room for the pixels of the image's shape, checked.
void reserve(Interleaved& image, const std::string& path);

/// The image of a PNG file with these bytes, with three channels, as Pillow's convert("RGB") gives them: grey becomes
/// three equal channels, transparency is dropped, and of 16 bits the upper 8 count. Throws FileError.
Interleaved read_png(const std::string& path, const std::string& bytes);

}  // namespace xtape
