// PNG files of every kind: colours, orientation, texts, and errors.
#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <sstream>

#include "allocations.hpp"
#include "drawn_images.hpp"
#include "error_of.hpp"
#include "folders.hpp"
#include "needs.hpp"

namespace images {

using namespace xtape;
using test::error_of;
using test::Folder;

namespace {
std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string both = name + data;
  const auto sum = crc32(0, reinterpret_cast<const unsigned char*>(both.data()), static_cast<unsigned>(both.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + both + big_endian(static_cast<std::uint32_t>(sum));
}

/// A PNG file: its colour type is 0 (grey), 2 (colours), 3 (palette), 4 (grey, alpha) or 6 (colours, alpha). `rows`
/// begin with a byte of their filter.
std::string png_of(std::uint32_t width, std::uint32_t height, char depth, char colours, const std::string& rows,
                   const std::string& chunks = "", bool interlaced = false) {
  std::string packed(rows.size() + 100, 0);
  auto size = static_cast<uLongf>(packed.size());
  compress(reinterpret_cast<unsigned char*>(packed.data()), &size, reinterpret_cast<const unsigned char*>(rows.data()),
           static_cast<uLong>(rows.size()));
  packed.resize(size);
  const std::string head =
      big_endian(width) + big_endian(height) + depth + colours + '\0' + '\0' + (interlaced ? '\1' : '\0');
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + chunks + chunk("IDAT", packed) + chunk("IEND", "");
}
}  // namespace

TEST_CASE("images: every kind of PNG gives the colours that are in the file") {
  const Folder folder;
  const auto pixels = [&](const std::string& bytes) { return read_image(folder.write("a.png", bytes)).pixels; };
  const auto text = [](std::initializer_list<int> bytes) {
    std::string made;
    for (const int byte : bytes) made += static_cast<char>(byte);
    return made;
  };
  CHECK(pixels(png_of(4, 1, 2, 0, text({0, 0b00011011}))) == Bytes{0, 85, 170, 255, 0, 85, 170, 255, 0, 85, 170, 255});
  CHECK(pixels(png_of(1, 1, 16, 2, text({0, 1, 128, 2, 255, 254, 127}))) == Bytes{1, 2, 254});  // the upper bytes
  CHECK(pixels(png_of(1, 1, 8, 6, text({0, 9, 8, 7, 0}))) == Bytes{9, 8, 7});                   // transparent
  CHECK(pixels(png_of(1, 1, 8, 4, text({0, 9, 100}))) == Bytes{9, 9, 9});
  const std::string palette = chunk("PLTE", text({10, 11, 12, 13, 14, 15})) + chunk("tRNS", text({0}));
  CHECK(pixels(png_of(2, 1, 1, 3, text({0, 0b01000000}), palette)) == Bytes{10, 13, 11, 14, 12, 15});
  CHECK(pixels(png_of(1, 1, 8, 0, text({0, 50}), chunk("gAMA", big_endian(100000)))) == Bytes{50, 50, 50});
  // Two passes, the first and the sixth, have one pixel each.
  CHECK(pixels(png_of(2, 1, 8, 0, text({0, 3, 0, 4}), "", true)) == Bytes{3, 4, 3, 4, 3, 4});
}

namespace {
/// The image with chunks behind its header, and before its end.
std::string png_with(const std::string& before, const std::string& after = "") {
  const std::string bytes = png();
  const std::size_t header = 33, end = bytes.size() - 12;
  return bytes.substr(0, header) + before + bytes.substr(header, end - header) + after + bytes.substr(end);
}
/// Exif with two entries: a width, and the orientation, a number of 16 bits.
std::string exif(std::uint32_t orientation, bool highest_first) {
  const auto number = [&](std::uint32_t value, std::size_t bytes) {
    const std::string whole = big_endian(value).substr(4 - bytes);
    return highest_first ? whole : std::string(whole.rbegin(), whole.rend());
  };
  const auto entry = [&](std::uint32_t tag, std::uint32_t value) {
    return number(tag, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2);
  };
  return (highest_first ? "MM" : "II") + number(42, 2) + number(10, 4) + "??" + number(2, 2) + entry(0x100, 7) +
         entry(0x112, orientation) + number(0, 4);
}
}  // namespace

TEST_CASE("images: a PNG file is turned by the orientation of its Exif") {
  const Folder folder;
  const Images upright = read_image(folder.write("upright.png", png()));
  // The places of the upright image that Pillow's exif_transpose gives, row by row.
  const std::vector<std::vector<std::size_t>> places = {{0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0},
                                                        {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2},
                                                        {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  const auto found = [&](const std::string& bytes) { return read_image(folder.write("turned.png", bytes)); };
  for (std::uint32_t orientation = 1; orientation <= 8; ++orientation) {
    Bytes expected;
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (const std::size_t place : places[orientation - 1]) expected.push_back(upright.pixels[6 * channel + place]);
    for (const bool highest_first : {true, false}) {
      CAPTURE(orientation);
      CAPTURE(highest_first);
      const std::string turning = chunk("eXIf", exif(orientation, highest_first));
      for (const Images& image : {found(png_with(turning)), found(png_with("", turning))}) {
        CHECK(image.shape == (orientation < 5 ? ImageShape{3, 2, 3} : ImageShape{3, 3, 2}));
        CHECK(image.pixels == expected);
      }
    }
  }
  // No orientation, or one that nothing can be made of.
  for (const std::string& odd :
       {exif(0, true), exif(9, true), exif(6, true).substr(0, 30), exif(6, false).substr(0, 9),
        std::string("MM\0*\xff\xff\xff\xff??", 10), std::string("MM"), std::string("??????????")})
    CHECK(found(png_with(chunk("eXIf", odd))).pixels == upright.pixels);
}

TEST_CASE("images: texts in a PNG file are passed over, so that they take no memory" * needs_no_sanitizer()) {
  const Folder folder;
  std::string packed(compressBound(1 << 20), '\0'), texts;
  const std::string text(1 << 20, 'a');
  uLongf size = packed.size();
  REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                   text.size()) == Z_OK);
  packed.resize(size);
  for (int i = 0; i < 100; ++i) texts += chunk("zTXt", "k" + std::string(2, '\0') + packed);
  const std::string few = folder.write("few.png", png()), many = folder.write("many.png", png_with(texts, texts));
  const auto counted = [](const std::string& path) {
    const AllocationCount count;
    CHECK(read_image(path).shape == ImageShape{3, 2, 3});
    return count.count();
  };
  counted(few);
  CHECK(counted(many) < counted(few) + 10);
}

TEST_CASE("images: errors of PNG files") {
  const Folder folder;
  const auto error = [&](const std::string& bytes) {
    return error_of([&] { read_image(folder.write("a.png", bytes)); });
  };
  const std::string whole = png_of(3, 2, 8, 0, std::string(8, '\0'));
  CHECK(error(whole).empty());
  for (std::size_t size = 0; size + 13 < whole.size(); ++size)  // up to the checksum of the pixels
    CHECK_HAS(error(whole.substr(0, size)), "a.png: not a PNG");
  CHECK_HAS(error(png_of(0, 2, 8, 0, "")), "a.png: not a PNG image that can be read");
  CHECK_HAS(error(png_of(70000, 1, 8, 0, "")), "1 to 65536 pixels in each direction, not 1 x 70000");
  CHECK_HAS(error(png_of(13377, 13377, 8, 2, "")), "the PNG image is cut off");
  CHECK_HAS(error(png_of(13378, 13377, 1, 0, std::string(1 << 20, '\0'))),
            "at most 178956970 pixels, not 13377 x 13378");
  CHECK_HAS(error(png_of(3, 2, 7, 0, std::string(8, '\0'))), "not a PNG image that can be read");
  CHECK_HAS(error(png_of(3, 2, 8, 0, std::string(4, '\0'))), "not a PNG image that can be read");
  CHECK_HAS(error(png_of(1, 1, 8, 3, std::string(2, '\0'))), "not a PNG image that can be read");  // no palette
}

}  // namespace images
