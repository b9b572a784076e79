// Reads PNG images.
#include <png.h>

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
    if (png_get_eXIf_1(png, info, &size, &exif) == 0) return 1;
    return exif_orientation({reinterpret_cast<const char*>(exif), size});
  }

 private:
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
    if (reader.pixels(rows.data())) return turned(std::move(image), reader.orientation());
  }
  fail_image(path, std::string("not a PNG image that can be read: ") + reader.message);
}

}  // namespace xtape
