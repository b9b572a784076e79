// Images from files, and their batches.
#include "xtape/images.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "allocations.hpp"
#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/safetensors.hpp"

namespace images {

using namespace xtape;
using test::error_of;
using test::Folder;
namespace fs = std::filesystem;

namespace {
using Bytes = std::vector<std::uint8_t>;

#define CHECK_HAS(text, part)                     \
  do {                                            \
    const std::string found = text;               \
    CAPTURE(found);                               \
    CHECK(found.find(part) != std::string::npos); \
  } while (false)

/// 3 x 2 pixels: red, green, blue; 10 … 90. Written by zlib and nothing else.
const std::string png_in_hex =
    "89504e470d0a1a0a0000000d49484452000000030000000208020000001216f14d000000174944415478da63f8cfc0c0"
    "00c15c22721a46366e015100335904c05c9be18c0000000049454e44ae426082"
    "";

std::string png() {
  std::string bytes;
  for (std::size_t i = 0; i < png_in_hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(png_in_hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// `count` images of 1 x 4 x 5 bytes, image i with label i % 3. Byte k of image i is i + k + 1.
Images numbered(std::size_t count) {
  Images images{{1, 4, 5}, {}, {}, {"a", "b", "c"}, {"numbered"}};
  for (std::size_t i = 0; i < count; ++i) {
    images.labels.push_back(static_cast<std::int64_t>(i % 3));
    for (std::size_t k = 0; k < 20; ++k) images.pixels.push_back(static_cast<std::uint8_t>(i + k + 1));
  }
  return images;
}

std::vector<float> numbers(const BatchArrays& batch, std::int64_t row) {
  const float* first = batch.at("images").as<float>() + 20 * row;
  return {first, first + 20};
}

/// The bytes k + first of an image that is mirrored, then moved.
std::vector<float> varied(int first, bool mirrored, int down, int right) {
  std::vector<float> values;
  for (int i = down; i < 4 + down; ++i)
    for (int j = right; j < 5 + right; ++j) {
      const bool inside = i >= 0 && i < 4 && j >= 0 && j < 5;
      values.push_back(inside ? static_cast<float>(first + 5 * i + (mirrored ? 4 - j : j)) : 0.0F);
    }
  for (float& value : values) value = static_cast<float>((static_cast<double>(value) / 255 - 0.25) / 0.5);
  return values;
}

Array array_of(const std::vector<std::int64_t>& values, const Shape& shape) {
  Array array(Dtype::int64, shape);
  std::copy(values.begin(), values.end(), array.as<std::int64_t>());
  return array;
}
}  // namespace

TEST_CASE("images: PNG and PNM files, grey and coloured") {
  const Folder folder;
  const Bytes coloured = {255, 0, 0, 10, 40, 70, 0, 255, 0, 20, 50, 80, 0, 0, 255, 30, 60, 90};
  const std::string interleaved{"\xff\0\0\0\xff\0\0\0\xff\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a", 18};
  const std::string pnm = "P6 # wide\n3\n2 255\n" + interleaved;
  for (const std::string& path : {folder.write("a.png", png()), folder.write("b.ppm", pnm)}) {
    const Images colours = read_image(path);
    CHECK(colours.shape == ImageShape{3, 2, 3});
    CHECK(colours.pixels == coloured);
    const Images grey = read_image(path, 1);
    CHECK(grey.shape == ImageShape{1, 2, 3});
    CHECK(grey.pixels == Bytes{76, 150, 29, 18, 48, 78});  // by Pillow's convert("L")
  }
  const Images grey = read_image(folder.write("c.pgm", std::string("P5\n2 1\n15\n\x05\x0f", 13)), 3);
  CHECK(grey.pixels == Bytes{85, 255, 85, 255, 85, 255});
  // As Pillow reads them: 25.5, 76.5 and 178.5 go to the even byte, and what is above the largest value is white.
  CHECK(read_image(folder.write("d.pgm", "P5 5 1 100 \x0a\x1e\x46\x64\x65"), 1).pixels == Bytes{26, 76, 178, 255, 255});
}

TEST_CASE("images: errors of single files") {
  const Folder folder;
  const auto error = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.write(name, bytes);
    const std::string text = error_of([&] { read_image(path); });
    CHECK(text.starts_with(path + ": "));
    return text;
  };
  CHECK_HAS(error("short.pgm", "P5 2 3 255\nabc"), "has 3 bytes of the 6 of its pixels: the file is cut off");
  CHECK_HAS(error("text.ppm", "P3 1 1 255 1 2 3"), "a PNM image of kind P3: only P5 and P6");
  CHECK_HAS(error("vast.pgm", "P5 65536 65536 255 ab"), "at most 178956970 pixels, not 65536 x 65536 = 4294967296");
  CHECK_HAS(error("large.pgm", "P5 13377 13377 255 ab"), "the file is cut off");
  CHECK_HAS(error("larger.ppm", "P6 13378 13377 255 ab"), "at most 178956970 pixels, not 13377 x 13378 = 178957506");
  CHECK_HAS(error("deep.pgm", "P5 1 1 65535 ab"), "must be bytes, but the largest is 65535");
  CHECK_HAS(error("none.pgm", "P5 0 1 255 ab"), "an image has 1 to 65536 pixels in each direction, not 1 x 0");
  CHECK_HAS(error("huge.pgm", "P5 99999999999999999999 1 255"), "not 1 x 100000000000000000");
  CHECK_HAS(error("wide.pgm", "P5 7654321 12 255 ab"), "pixels in each direction, not 12 x 7654321");
  CHECK_HAS(error("head.pgm", "P5 abcdefg"), "the header of the PNM image must have");
  CHECK_HAS(error("other.png", "<svg width='1'>"), "not a PNG image that can be read");
  for (const auto& [bytes, kind] : {std::pair<std::string, const char*>{"\xff\xd8\xff\xe0, JFIF", "JPEG"},
                                    {"GIF89a, not PNG", "GIF"},
                                    {"BM, not PNG", "BMP"},
                                    {"RIFFxxxxWEBPVP8 ", "WebP"},
                                    {std::string("II*\0 little", 11), "TIFF"},
                                    {std::string("MM\0* large", 10), "TIFF"}})
    CHECK_HAS(error("photo.png", bytes), std::string("a ") + kind + " image, and only PNG and PNM images are read");
  CHECK_HAS(error("empty.png", ""), "not a PNG or PNM image");
  std::string damaged = png();
  damaged.resize(60);
  CHECK_HAS(error("cut.png", damaged), "not a PNG image that can be read");
  CHECK_HAS(error_of([&] { read_image(folder / "nowhere.png"); }), "nowhere.png");
  CHECK_HAS(error_of([&] { read_image(folder / "a.png", 2); }), "1 channel (grey) or 3");
}

TEST_CASE("images: a folder has a folder for each label, and mixes them") {
  const Folder folder;
  const auto image = [](char pixel) { return std::string("P5 1 1 255\n") + pixel; };
  for (const char* name : {"cat/1.pgm", "cat/2.pgm", "dog/1.pgm", "dog/2.pgm", "dog/3.pgm", "dog/4.pgm"})
    folder.write(std::string("pets/") + name, image(name[4]));
  folder.write("pets/dog/notes.txt", "no image");
  folder.write("pets/list.txt", "no folder");
  const Images found = read_images(folder / "pets", 1);
  CHECK(found.names == std::vector<std::string>{"cat", "dog"});
  CHECK(found.labels == std::vector<std::int64_t>{1, 0, 1, 1, 0, 1});
  CHECK(found.pixels == Bytes{'1', '1', '2', '3', '2', '4'});
  CHECK(found.place(1) == folder / "pets/cat/1.pgm");
  // Endings in any case, and files of other kinds of images, which are not left out silently.
  for (const char* name : {"x.JPG", "x.jpeg", "x.Gif", "x.bmp", "x.webp", "x.tif", "x.TIFF"}) {
    const std::string photo = folder.write(std::string("pets/dog/") + name, "\xff\xd8\xff\xe0, JFIF");
    CHECK_HAS(error_of([&] { read_images(folder / "pets", 1); }), photo + ": a JPEG image, and only PNG and PNM");
    fs::remove(photo);
  }
  for (const char* name : {"pets/dog/5.Pgm", "pets/cat/3.PNM"}) folder.write(name, image('9'));
  CHECK(read_images(folder / "pets", 1).labels == std::vector<std::int64_t>{1, 0, 1, 0, 1, 1, 0, 1});
  for (const char* name : {"pets/dog/5.Pgm", "pets/cat/3.PNM"}) fs::remove(folder / name);
  folder.write("pets/cat/0.pgm", "P5 2 1 255\nab");
  CHECK_HAS(error_of([&] { read_images(folder / "pets", 1); }),
            "the image is 1 x 2 (height x width), and " + (folder / "pets/dog/1.pgm") + " is 1 x 1: all must have one");
  fs::create_directories(folder / "empty");
  CHECK_HAS(error_of([&] { read_images(folder / "empty"); }), "has no images");
  fs::create_directories(folder / "pets/nobody");
  CHECK_HAS(error_of([&] { read_images(folder / "pets", 1); }), "nobody has no images; its name would be a label");
  Images rest = {{1, 1, 1}, {7}, {0}, {"0"}, {"digits.safetensors"}, 11};
  CHECK(rest.place(0) == "digits.safetensors, image 12");
}

TEST_CASE("images: the name of a folder is a label, so it is UTF-8") {
  const Folder folder;
  fs::create_directories(folder / "na\xEFve");
  folder.write("na\xEFve/a.pgm", "P5 1 1 255 a");
  CHECK_HAS(error_of([&] { read_images(folder.path()); }),
            "the folder's name is a label: the text is not UTF-8 at byte 2");
}

TEST_CASE("images: a safetensors file") {
  const Folder folder;
  const std::string path = folder / "images.safetensors";
  const auto saved = [&](const Store& arrays) {
    save_arrays(path, arrays);
    return read_images(path);
  };
  Array pixels = array_of({0, 1, 2, 3, 252, 253, 254, 255}, {2, 2, 2}), labels = array_of({1, 0}, {2});
  const Images found = saved({{"images", pixels}, {"labels", labels}});
  CHECK(found.shape == ImageShape{1, 2, 2});
  CHECK(found.pixels == Bytes{0, 1, 2, 3, 252, 253, 254, 255});
  CHECK(found.labels == std::vector<std::int64_t>{1, 0});
  CHECK(found.names == std::vector<std::string>{"0", "1"});
  CHECK(found.place(1) == path + ", image 2");
  CHECK(saved({{"images", array_of({0, 1, 2, 3}, {1, 2, 1, 2})}, {"labels", array_of({0}, {1})}}).shape ==
        ImageShape{2, 1, 2});
  const auto error = [&](const Store& arrays) { return error_of([&] { saved(arrays); }); };
  CHECK_HAS(error({{"images", pixels}}), "has no array 'labels'");
  CHECK_HAS(error({{"images", pixels}, {"labels", array_of({1}, {1})}}), "got (2, 2, 2) and (1,)");
  CHECK_HAS(error({{"images", array_of({256}, {1, 1, 1})}, {"labels", array_of({1}, {1})}}),
            "'images' has an element of 256; it must be 0 to 255");
  CHECK_HAS(error({{"images", pixels}, {"labels", array_of({0, -1}, {2})}}), "'labels' has an element of -1");
  CHECK_HAS(error({{"images", Array(Dtype::float32, {1, 1, 1})}, {"labels", array_of({1}, {1})}}),
            "'images' must be of integers (U8, uint8), not float32");
}

TEST_CASE("images: .npz files of NumPy, stored and compressed") {
  const Folder folder;
  const auto bytes_of = [](const std::string& name) {
    std::ostringstream bytes;
    bytes << std::ifstream(source_root() + "/tests/golden/npy/" + name, std::ios::binary).rdbuf();
    return bytes.str();
  };
  const auto error = [&](const std::string& bytes) {
    const std::string path = folder.write("images.npz", bytes);
    const std::string text = error_of([&] { read_images(path); });
    CHECK_HAS(text, path);
    return text;
  };
  for (const char* name : {"images.npz", "images_compressed.npz"}) {
    const std::string whole = bytes_of(name), path = folder.write(name, whole);
    const Images found = read_images(path);
    CHECK(found.shape == ImageShape{1, 2, 2});
    CHECK(found.pixels == Bytes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(found.labels == std::vector<std::int64_t>{2, 0, 1});
    CHECK(found.names == std::vector<std::string>{"0", "1", "2"});
    CHECK(found.place(1) == path + ", image 2");
    for (std::size_t size = 0; size < whole.size(); size += 7) CHECK_FALSE(error(whole.substr(0, size)).empty());
    std::string changed = whole;
    changed[changed.find("images.npy") + 10 + 20 + 40] ^= 1;  // in the packed bytes
    CHECK_HAS(error(changed), "'images.npy' in it is damaged");
  }
  const std::string whole = bytes_of("images.npz");
  const std::size_t directory = whole.find("PK\1\2");
  const auto with = [&](std::size_t at, char byte) {
    std::string changed = whole;
    changed[at] = byte;
    return error(changed);
  };
  CHECK_HAS(error(bytes_of("other_names.npz")), "has no array 'images'; its files are 'x_train.npy', 'y_train.npy'");
  CHECK_HAS(error("\x93NUMPY and more than twenty bytes"), "it is not a ZIP archive that NumPy has written");
  CHECK_HAS(with(directory, 'Q'), "the directory of the archive is damaged");
  CHECK_HAS(with(directory + 8, 1), "'images.npy' is encrypted");
  CHECK_HAS(with(directory + 10, 12),
            "'images.npy' in it is packed by method 12; 0 (stored) and 8 (deflate) are known");
  CHECK_HAS(with(directory + 24, 5), "'images.npy' in it cannot have 5 bytes, packed in 140");
  CHECK_HAS(with(directory + 42, 5), "'images.npy' in it is not where the directory says");
  CHECK_HAS(with(whole.size() - 6, 0), "the directory of the archive is not where its end says");
}

TEST_CASE("image batches: each epoch has every image once, varied by its key") {
  ImageBatchesOptions options;
  options.rows = 4;
  options.seed = 3;
  options.images = {{0.25}, {0.5}, true, 2};
  const ImageBatches batches(numbered(10), numbered(5), options);
  CHECK(batches.epoch_batches() == 3);
  CHECK(batches.validation_batches() == 2);
  CHECK(batches.blank().at("images").shape() == Shape{4, 1, 4, 5});
  std::set<std::vector<float>> all;
  std::set<std::string> variations;
  BatchArrays batch = batches.blank();
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    std::set<std::string> places;
    for (std::uint64_t i = 0; i < 3; ++i) {
      batches.training(3 * epoch + i, batch);
      const std::int64_t rows = batch.at("images").shape()[0];
      CHECK((rows == 3 || rows == 4));
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::string place = batches.training_place(3 * epoch + i, "images", row);
        places.insert(place);
        const int image = std::stoi(place.substr(place.rfind(' '))) - 1;
        CHECK(batch.at("label").as<std::int64_t>()[row] == image % 3);
        bool found = false;
        for (int mirrored = 0; mirrored < 2; ++mirrored)
          for (int down = -2; down <= 2; ++down)
            for (int right = -2; right <= 2; ++right)
              if (numbers(batch, row) == varied(image + 1, mirrored == 1, down, right)) {
                found = true;
                variations.insert(std::to_string(mirrored) + "," + std::to_string(down) + "," + std::to_string(right));
              }
        CHECK(found);
        all.insert(numbers(batch, row));
      }
    }
    CHECK(places.size() == 10);
  }
  CHECK(variations.size() > 25);  // of 50, in 80 draws
  BatchArrays again;
  const ImageBatches same(numbered(10), numbered(5), options);
  same.training(23, again);
  CHECK(std::equal(batch.at("images").as<float>(), batch.at("images").as<float>() + batch.at("images").count(),
                   again.at("images").as<float>()));
  batches.validation(1, batch);
  CHECK(batch.at("label").count() == 3);
  for (int row = 0; row < 3; ++row) CHECK(numbers(batch, row) == varied(row + 3, false, 0, 0));
  CHECK(batches.training_place(0, "other", 0).empty());
  CHECK(batches.training_place(0, "label", 4).empty());
}

TEST_CASE("image batches: errors") {
  const auto error = [](const Images& training, const Images& validation, const ImageBatchesOptions& options = {}) {
    return error_of([&] { ImageBatches(training, validation, options); });
  };
  const Images images = numbered(3);
  CHECK(error(images, images).empty());
  CHECK_HAS(error(images, numbered(0)), "the validation split has no images");
  Images other = images;
  other.shape = {1, 5, 4};
  CHECK_HAS(error(images, other), "has 1 channel of 5 x 4 (height x width), numbered, image 1 has 1 channel of 4 x 5");
  other = images;
  other.names.back() = "another";
  CHECK_HAS(error(images, other), "the same names of labels");
  other.names.pop_back();
  CHECK_HAS(error(images, other), "there is no name of label 2");
  const auto with = [&](const ImageOptions& how, std::int64_t rows = 2) {
    ImageBatchesOptions options;
    options.rows = rows;
    options.images = how;
    return error(images, images, options);
  };
  CHECK_HAS(with({{0, 1}, {1}, false, 0}), "mean must have one number, or one for each of the 1 channels, not 2");
  CHECK_HAS(with({{0}, {0}, false, 0}), "deviation must be above 0 and finite, got 0");
  CHECK_HAS(with({{NAN}, {1}, false, 0}), "mean must be finite, got nan");
  CHECK_HAS(with({{0}, {1}, false, 5}), "crop must be 0 to 4");
  CHECK_HAS(with({{0}, {1}, false, 0}, 0), "at least one image, got 0");
}

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

TEST_CASE("images: texts in a PNG file are passed over, so that they take no memory") {
  if (!allocations_are_counted()) return;
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

namespace {
/// What a triangle, as wide as a step between new pixels, gives at new pixel `i` of `to`.
double averaged(const std::vector<double>& row, std::size_t i, std::size_t to) {
  const double step = static_cast<double>(row.size()) / static_cast<double>(to), width = std::max(1.0, step);
  const double middle = (static_cast<double>(i) + 0.5) * step - 0.5;
  double sum = 0, total = 0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(k) - middle) / width);
    sum += weight * row[k];
    total += weight;
  }
  return sum / total;
}
}  // namespace

TEST_CASE("images: resizing mixes pixels by a triangle, and keeps what has its size") {
  Images image = numbered(1);  // 4 x 5 bytes, 1 to 20
  for (std::size_t k = 0; k < 20; ++k) image.pixels[k] = static_cast<std::uint8_t>(97 * k % 251);
  for (const auto& [height, width] :
       {std::pair<std::int64_t, std::int64_t>{4, 5}, {9, 5}, {4, 3}, {1, 1}, {7, 11}, {2, 30}}) {
    ImageResize resize;
    resize.height = height;
    resize.width = width;
    const Images made = resized(image, resize);
    REQUIRE(made.shape == ImageShape{1, height, width});
    CHECK(made.names == image.names);
    for (std::size_t i = 0; i < static_cast<std::size_t>(height); ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
        std::vector<double> column;
        for (std::size_t row = 0; row < 4; ++row)
          column.push_back(averaged({image.pixels.begin() + static_cast<std::ptrdiff_t>(row) * 5,
                                     image.pixels.begin() + static_cast<std::ptrdiff_t>(row) * 5 + 5},
                                    j, static_cast<std::size_t>(width)));
        const double expected = averaged(column, i, static_cast<std::size_t>(height));
        CHECK(std::abs(made.pixels[i * static_cast<std::size_t>(width) + j] - expected) <= 1);
      }
  }
  for (const ImageFilter filter : {ImageFilter::lanczos, ImageFilter::bilinear, ImageFilter::bicubic}) {
    Images even = numbered(2);
    std::fill(even.pixels.begin(), even.pixels.end(), std::uint8_t{200});
    ImageResize resize;
    resize.shorter = 13;
    resize.filter = filter;
    const Images made = resized(even, resize);
    CHECK(made.shape == ImageShape{1, 13, 16});  // 13 · 5 / 4, rounded down
    CHECK(made.pixels == Bytes(2 * 13 * 16, 200));
  }
}

TEST_CASE("images: the middle of an image, with black around a small one") {
  const Images image = numbered(1);
  ImageResize resize;
  resize.middle_height = 2;
  resize.middle_width = 3;
  CHECK(resized(image, resize).pixels == Bytes{7, 8, 9, 12, 13, 14});
  resize.middle_height = 1;
  resize.middle_width = 8;  // three more columns than there are: two of them before
  CHECK(resized(image, resize).pixels == Bytes{0, 0, 6, 7, 8, 9, 10, 0});
  const auto error = [&](const ImageResize& wrong, const Images& of) { return error_of([&] { resized(of, wrong); }); };
  ImageResize half, both, negative, vast;
  half.height = 3;
  both.height = both.width = both.shorter = 3;
  negative.shorter = -1;
  vast.shorter = 65536;
  CHECK_HAS(error(half, image), "a height and a width, not one of them");
  CHECK_HAS(error(both, image), "or to a shorter side, not both");
  CHECK_HAS(error(negative, image), "1 to 65536 pixels in each direction, not -1");
  CHECK_HAS(error(vast, image), "4 x 5 (height x width) with a shorter side of 65536 would be 81920 pixels long");
  CHECK_HAS(error({}, Images{{1, 0, 5}, {1}, {}, {}, {}}), "1 pixels are no images with 1 channel of 0 x 5");
  CHECK_HAS(error({}, Images{{1, 2, 2}, {1, 2, 3}, {}, {}, {}}), "3 pixels are no images");
}

TEST_CASE("images: a folder of images of several sizes becomes one of one size") {
  const Folder folder;
  folder.write("pets/cat/1.pgm", "P5 2 1 255\nab");
  folder.write("pets/dog/1.pgm", "P5 1 3 255\nabc");
  ImageResize resize;
  resize.height = resize.width = 2;
  const Images found = read_images(folder / "pets", 1, resize);
  CHECK(found.shape == ImageShape{1, 2, 2});
  CHECK(found.pixels == Bytes{'a', 'b', 'a', 'b', 'a', 'a', 'c', 'c'});
}

TEST_CASE("images: preprocessor_config.json, read and written") {
  const Folder folder;
  const auto read = [&](const std::string& text) {
    folder.write(preparation_file, text);
    return read_image_preparation(folder.path());
  };
  const ImagePreparation usual = read("{}");
  CHECK((usual.resize.height == 224 && usual.resize.width == 224 && usual.resize.filter == ImageFilter::bilinear));
  CHECK(usual.numbers.mean == std::vector<double>{0.5});
  const ImagePreparation old =
      read(R"({"feature_extractor_type": "ViTFeatureExtractor", "size": 32, "do_pad": false})");
  CHECK((old.resize.height == 32 && old.resize.width == 32));
  const ImagePreparation bytes = read(R"({"do_rescale": false, "do_normalize": false, "do_resize": false})");
  const Images image = numbered(1);
  CHECK(image_array(image, bytes.numbers).as<float>()[4] == 5);
  CHECK(bytes.resize.height == 0);
  const ImagePreparation scaled = read(R"({"rescale_factor": 0.5, "image_mean": 2, "image_std": [4]})");
  CHECK(image_array(image, scaled.numbers).as<float>()[8] == doctest::Approx((9 * 0.5 - 2) / 4));
  const ImagePreparation other = read(R"({"image_processor_type": "CLIPImageProcessor", "do_center_crop": true,
      "crop_size": {"height": 20, "width": 30}, "size": {"shortest_edge": 40}, "resample": 3, "image_mean": [1, 2, 3],
      "image_std": [4, 5, 6], "do_convert_rgb": true, "device": null})");
  CHECK((other.resize.shorter == 40 && other.resize.middle_height == 20 && other.resize.middle_width == 30));
  CHECK(other.resize.filter == ImageFilter::bicubic);
  // Null turns a step off; what only this step needs may then be null, too.
  const ImagePreparation off = read(R"({"do_resize": null, "size": null, "resample": null, "do_center_crop": null,
      "crop_size": null, "do_rescale": null, "rescale_factor": null, "do_normalize": null, "image_mean": null})");
  CHECK(off.resize.height == 0);
  CHECK(off.resize.middle_height == 0);
  CHECK(image_array(image, off.numbers).as<float>()[4] == 5);
  const ImagePreparation shorter = read(R"({"size": 20, "default_to_square": false})");
  CHECK((shorter.resize.shorter == 20 && shorter.resize.height == 0));
  CHECK(read(R"({"size": 20, "default_to_square": true})").resize.height == 20);
  CHECK(read(R"({"size": [20, 30], "default_to_square": false})").resize.width == 30);
  // One type wins over the other, and null is none.
  CHECK(read(R"({"image_processor_type": "ViTImageProcessorFast", "feature_extractor_type": "X"})").resize.width ==
        224);
  CHECK(read(R"({"image_processor_type": null, "feature_extractor_type": "ViTFeatureExtractor"})").resize.width == 224);
  for (const ImagePreparation& each : {usual, old, bytes, scaled, other, shorter}) {
    write_image_preparation(each, 3, folder.path());
    const ImagePreparation again = read_image_preparation(folder.path());
    CHECK((again.resize.height == each.resize.height && again.resize.shorter == each.resize.shorter));
    CHECK((again.resize.middle_width == each.resize.middle_width && again.resize.filter == each.resize.filter));
    CHECK(again.numbers.mean[0] == doctest::Approx(each.numbers.mean[0]));
    CHECK(again.numbers.deviation.back() == doctest::Approx(each.numbers.deviation.back()));
  }
}

TEST_CASE("images: errors of preprocessor_config.json") {
  const Folder folder;
  CHECK_HAS(error_of([&] { read_image_preparation(folder.path()); }),
            folder.path() + " has no preprocessor_config.json, which says how images are prepared; for images of 224");
  for (const auto& each : {
           std::pair(R"([])", "line 1: an object belongs here"),
           {R"({"crop_pct": 0.9})", "'crop_pct' is a way of preparing images that is not supported; supported are"},
           {R"({"do_pad": true})", "'do_pad' is a way of preparing images"},
           {R"({"do_resize": 1})", "true or false belongs here"},
           {R"({"size": 0})", "1"},
           {R"({"size": {"height": 3}})", "width"},
           {R"({"size": {"height": 3, "width": 70000}})", "65536"},
           {R"({"size": {"shortest_edge": 3, "longest_edge": 5}})", "longest_edge"},
           {R"({"size": [1, 2, 3]})", "a list has a height and a width"},
           {R"({"size": "224"})", "line 1"},
           {R"({"resample": 0})", "'resample' must be 1 (Lanczos), 2 (bilinear) or 3 (bicubic)"},
           {R"({"resample": 2.5})", "'resample' must be 1"},
           {R"({"do_center_crop": true})", "the key 'crop_size' is missing"},
           {R"({"rescale_factor": 0})", "'rescale_factor' must be above 0"},
           {R"({"rescale_factor": -1e300})", "'rescale_factor' must be above 0"},
           {R"({"image_mean": [1, 2]})", "or one for each channel, of which the model reads 3, not 2"},
           {R"({"size": null})", "'size' is null, and the preparation that this file says needs it"},
           {R"({"resample": null})", "'resample' is null"},
           {R"({"do_center_crop": true, "crop_size": null})", "'crop_size' is null"},
           {R"({"rescale_factor": null})", "'rescale_factor' is null"},
           {R"({"image_mean": null})", "'image_mean' is null"},
           {R"({"image_std": null})", "'image_std' is null"},
           {R"({"image_processor_type": 3})", "line 1"},
           {R"({"image_processor_type": "ViTHybridImageProcessor"})",
            "'image_processor_type' is \"ViTHybridImageProcessor\", which may prepare images in a way of its own"},
           {R"({"image_processor_type": "ConvNextImageProcessor", "size": 3})", "supported are ImageProcessor, also"},
           {R"({"image_processor_type": "ImageProcessor"})", "'image_processor_type' is \"ImageProcessor\", which"},
           {R"({"feature_extractor_type": "LevitFeatureExtractor"})", "'feature_extractor_type' is"},
           {R"({"image_processor_type": "CLIPImageProcessor", "feature_extractor_type": "ViTFeatureExtractor"})",
            "is missing, whose default for CLIPImageProcessor"},
           {R"({"image_mean": "x"})", "a number"},
           {R"({"image_std": 0})", "'image_std' must be above 0"},
           {R"({"image_processor_type": "CLIPImageProcessor"})", "is missing, whose default for CLIPImageProcessor"},
           {R"({"image_processor_type": "CLIPImageProcessor", "resample": 3, "size": 224})", "has no one meaning"},
           {R"({"size": 3)", "line 1"},
       }) {
    const std::string file = folder.write(preparation_file, each.first);
    const std::string error = error_of([&] { read_image_preparation(folder.path()); });
    CAPTURE(each.first);
    CHECK_HAS(error, each.second);
    CHECK_HAS(error, file);
  }
}

}  // namespace images
