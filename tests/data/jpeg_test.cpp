// JPEG files: pixels as Pillow decodes them, orientation, and errors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "drawn_images.hpp"
#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/text.hpp"

namespace images {

using namespace xtape;
using test::error_of;
using test::Folder;

namespace {
std::string of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

nlohmann::json golden_jpeg() {
  return nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/jpeg.json"));
}
}  // namespace

TEST_CASE("images: JPEG files have the pixels of Pillow") {
  const Folder folder;
  const auto golden = golden_jpeg();
  for (const auto& row : golden.at("rows")) {
    CAPTURE(row.at("name").get<std::string>());
    const Images image = read_image(folder.write("a.jpg", of_hex(row.at("file"))));
    CHECK(image.shape.height == row.at("height"));
    CHECK(image.shape.width == row.at("width"));
    const std::string pixels = of_hex(row.at("pixels"));
    const std::size_t count = pixels.size() / 3;
    REQUIRE(image.pixels.size() == pixels.size());
    int wrong = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i)
      wrong += image.pixels[i % 3 * count + i / 3] == static_cast<std::uint8_t>(pixels[i]) ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("images: a damaged JPEG file is one error") {
  const Folder folder;
  const auto golden = golden_jpeg();
  const auto complaint = [&](const std::string& bytes) {
    return error_of([&] { read_image(folder.write("a.jpg", bytes)); });
  };
  CHECK_HAS(complaint(of_hex(golden.at("cmyk"))), "a.jpg: the JPEG image has the colours of print (CMYK)");
  CHECK_HAS(complaint("\xff\xd8\xff\xe0, JFIF"), "a.jpg: not a JPEG image that can be read: ");
  for (const auto& row : golden.at("rows")) {
    const std::string whole = of_hex(row.at("file"));
    // Cut off anywhere, apart from the mark of the end, it gives no grey pixels.
    for (std::size_t size = 8; size + 2 < whole.size(); size += 7)
      CHECK_HAS(complaint(whole.substr(0, size)), "a.jpg: not a JPEG image that can be read: ");
    // Any damage gives an image or an error.
    for (std::size_t at = 2; at < whole.size(); at += 3) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      const std::string said = complaint(damaged);
      if (!said.empty()) CHECK_HAS(said, "a.jpg: ");
    }
  }
  // A header that promises many pixels is refused before memory is taken.
  std::string large = of_hex(golden.at("rows")[1].at("file"));
  const std::size_t frame = large.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  for (std::size_t i = 5; i < 9; ++i) large[frame + i] = '\xf0';
  CHECK_HAS(complaint(large), "a.jpg: an image has at most 178956970 pixels");
}

}  // namespace images
