/// Functions for reading image files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xtape/images.hpp"

namespace xtape {

inline constexpr std::int64_t most_side = 1 << 16;  ///< The maximum number of pixels of an image in each direction.
/// The maximum number of pixels of an image, which Pillow also accepts. A PNG file of a few megabytes could otherwise
/// fill the memory.
inline constexpr std::int64_t most_pixels = 178'956'970;

/// Pixels in the order of files: row by row, with the channels of a pixel together.
struct Interleaved {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;
};

/// Throws a FileError about an image.
[[noreturn]] void fail_image(const std::string& path, const std::string& message);
/// Throws FileError if a side is 0 or above `most_side`, or if the image has more than `most_pixels` pixels.
void check_sides(const ImageShape& shape, const std::string& path);
/// Throws Error if the pixels are not a whole number of images of the shape.
void check_pixels(const Images& images);
/// Throws Error if `channels` is neither 1 nor 3.
void check_channels(std::int64_t channels);
/// Reserves memory for the pixels of the image's shape. Checks the size first.
void reserve(Interleaved& image, const std::string& path);

/// Returns the image of a PNG file with these bytes. It has three channels with the values of Pillow's convert("RGB"):
/// grey becomes three equal channels, transparency is dropped, and 16-bit values keep only their upper 8 bits. If the
/// file has a chunk eXIf, the image is turned as its orientation specifies. Throws FileError.
Interleaved read_png(const std::string& path, const std::string& bytes);
/// The same for a JPEG file, with the values of Pillow. Throws FileError for an image in CMYK, and for a damaged one.
Interleaved read_jpeg(const std::string& path, const std::string& bytes);

/// Returns the orientation in an Exif block, 1 to 8, or 1 if it has none.
int exif_orientation(std::string_view exif);
/// Returns the image turned and mirrored as the orientation specifies.
Interleaved turned(Interleaved image, int orientation);

}  // namespace xtape
