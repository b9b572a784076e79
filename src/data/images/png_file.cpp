// Reads PNG images.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "data/images/image_files.hpp"

namespace xtape {

namespace {
/// An image that libpng reads. On an error, libpng leaves the calling function with a jump, so these functions have no
/// objects with destructors.
struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const char* bytes;
  std::size_t size, at = 0;
  char message[96] = "no memory is left";

  PngReader(const char* first, std::size_t count) : bytes(first), size(count) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {});
    if (png != nullptr) info = png_create_info_struct(png);
    if (info != nullptr) png_set_read_fn(png, this, read);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Reads the part before the pixels, and configures the reading of pixels. Returns false after an error.
  bool begin() {
    if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_benign_errors(png, 1);
    // Skips texts and profiles, which may be large. Reads the camera's orientation (eXIf).
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, reinterpret_cast<png_const_bytep>("eXIf"), 1);
    png_read_info(png, info);
    png_set_expand(png);  // converts palettes to colours, and fewer than 8 bits to 8 bits
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }
  bool pixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_read_image(png, rows);
    return true;
  }
  /// Returns the Exif orientation, 1 to 8, or 1 if the file has none. The file may have it after the pixels.
  int orientation() {
    if (setjmp(png_jmpbuf(png)) == 0) png_read_end(png, info);  // damage after the pixels is ignored
    png_bytep exif = nullptr;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(png, info, &size, &exif) == 0 || size < 8) return 1;
    const auto number = [&](png_uint_32 at, int bytes) {
      png_uint_32 value = 0;
      for (int i = 0; i < bytes; ++i) value = value << 8 | exif[exif[0] == 'M' ? at + i : at + bytes - 1 - i];
      return value;
    };
    const png_uint_32 first = number(4, 4);
    if (first > size - 2) return 1;
    const png_uint_32 entries = std::min(number(first, 2), (size - first - 2) / 12);
    for (png_uint_32 at = first + 2; at < first + 2 + 12 * entries; at += 12)
      if (number(at, 2) == orientation_tag && number(at + 2, 2) == short_type && number(at + 8, 2) <= 8)
        return std::max<int>(1, static_cast<int>(number(at + 8, 2)));
    return 1;
  }

 private:
  static constexpr png_uint_32 orientation_tag = 0x112, short_type = 3;

  [[noreturn]] static void fail(png_structp png, png_const_charp why) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message, why, sizeof self->message - 1);
    png_longjmp(png, 1);
  }
  static void read(png_structp png, png_bytep to, std::size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self->size - self->at) png_error(png, "the file is cut off");
    std::memcpy(to, self->bytes + self->at, count);
    self->at += count;
  }
};

/// Returns the image turned and mirrored as its Exif orientation specifies.
Interleaved turned(const Interleaved& image, int orientation) {
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
}  // namespace

Interleaved read_png(const std::string& path, const std::string& bytes) {
  PngReader reader(bytes.data(), bytes.size());
  Interleaved image;
  if (reader.begin()) {
    image.shape = {3, png_get_image_height(reader.png, reader.info), png_get_image_width(reader.png, reader.info)};
    check_sides(image.shape, path);
    // Deflate compresses by a factor of at most 1032, and a pixel has at least one bit.
    if (image.shape.height * image.shape.width / 8 > 1032 * std::ssize(bytes))
      fail_image(path, "the PNG image is cut off");
    reserve(image, path);
    if (png_get_rowbytes(reader.png, reader.info) != static_cast<std::size_t>(3 * image.shape.width))
      fail_image(path, "not a PNG image that can be read: its rows have another size than its header says");
    std::vector<png_bytep> rows;
    for (std::int64_t i = 0; i < image.shape.height; ++i)
      rows.push_back(image.pixels.data() + i * 3 * image.shape.width);
    if (reader.pixels(rows.data())) {
      const int orientation = reader.orientation();
      return orientation == 1 ? image : turned(image, orientation);
    }
  }
  fail_image(path, std::string("not a PNG image that can be read: ") + reader.message);
}

}  // namespace xtape
