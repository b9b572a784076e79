// Reads JPEG images.
#include <csetjmp>
#include <cstdio>
#include <string>

// These need <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "base/system/process_memory.hpp"
#include "data/images/image_files.hpp"

namespace xtape {

namespace {
/// An image that libjpeg reads. On an error, it leaves the calling function with a jump, so these functions have no
/// objects with destructors. Damage that libjpeg would repair with grey pixels is an error, too.
struct JpegReader {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf jump = {};
  char message[JMSG_LENGTH_MAX] = "";
  int orientation = 1;  // of the Exif block, 1 to 8

  JpegReader() {
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = fail;
    errors.emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA) fail(info);
    };
    errors.output_message = [](j_common_ptr) {};
    jpeg.client_data = this;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Reads the part before the pixels. Returns false after an error.
  bool begin(const std::string& bytes) {
    if (setjmp(jump) != 0) return false;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xFFFF);  // Exif
    jpeg_read_header(&jpeg, TRUE);
    orientation = read_orientation();  // jpeg_finish_decompress drops the markers
    return true;
  }
  bool pixels(unsigned char* to) {
    if (setjmp(jump) != 0) return false;
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      unsigned char* row = to + std::size_t{3} * jpeg.output_scanline * jpeg.output_width;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return true;
  }

 private:
  int read_orientation() const {
    constexpr std::string_view mark("Exif\0\0", 6);
    for (const jpeg_marker_struct* each = jpeg.marker_list; each != nullptr; each = each->next) {
      const std::string_view data(reinterpret_cast<const char*>(each->data), each->data_length);
      if (data.starts_with(mark)) return exif_orientation(data.substr(mark.size()));
    }
    return 1;
  }

  [[noreturn]] static void fail(j_common_ptr info) {
    auto* self = static_cast<JpegReader*>(info->client_data);
    info->err->format_message(info, self->message);
    std::longjmp(self->jump, 1);
  }
};
}  // namespace

Interleaved read_jpeg(const std::string& path, const std::string& bytes) {
  JpegReader reader;
  Interleaved image;
  if (reader.begin(bytes)) {
    const jpeg_decompress_struct& jpeg = reader.jpeg;
    if (jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK)
      fail_image(path, "the JPEG image has the colours of print (CMYK): convert it to red, green and blue");
    image.shape = {3, jpeg.image_height, jpeg.image_width};
    check_sides(image.shape, path);
    // A block of 64 pixels has at least one bit in Huffman's code. Chroma may have four times fewer blocks.
    if (jpeg.arith_code == 0 && image.shape.height * image.shape.width / 2048 > std::ssize(bytes))
      fail_image(path, "the JPEG image is cut off");
    reserve(image, path);
    // The coefficients of an image of several scans are in memory at once: two bytes for each value.
    if (jpeg_has_multiple_scans(&reader.jpeg) != 0)
      require_memory_left(2 * static_cast<std::size_t>(image.shape.pixels()), "the image " + path);
    if (reader.pixels(image.pixels.data())) return turned(std::move(image), reader.orientation);
  }
  fail_image(path, std::string("not a JPEG image that can be read: ") + reader.message);
}

}  // namespace xtape
