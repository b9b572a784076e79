// Images from files, and their batches.
#include "xtape/images.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "allocations.hpp"
#include "drawn_images.hpp"
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
  for (const auto& [bytes, kind] : {std::pair<std::string, const char*>{"GIF89a, not PNG", "GIF"},
                                    {"BM, not PNG", "BMP"},
                                    {"RIFFxxxxWEBPVP8 ", "WebP"},
                                    {std::string("II*\0 little", 11), "TIFF"},
                                    {std::string("MM\0* large", 10), "TIFF"}})
    CHECK_HAS(error("photo.png", bytes),
              std::string("a ") + kind + " image, and only PNG, JPEG and PNM images are read");
  CHECK_HAS(error("empty.png", ""), "not a PNG, JPEG or PNM image");
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
    const std::string photo = folder.write(std::string("pets/dog/") + name, "GIF89a, no photo");
    CHECK_HAS(error_of([&] { read_images(folder / "pets", 1); }), photo + ": a GIF image, and only PNG, JPEG and PNM");
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
  Images rest = {{1, 1, 1}, {7}, {0}, {"0"}, {"digits.safetensors"}, {0, 11}};
  CHECK(rest.place(0) == "digits.safetensors, image 12");
  rest.numbers = {2, 3};
  CHECK(rest.place(1) == "digits.safetensors, image 2");
  CHECK(rest.place(2) == "digits.safetensors, image 6");
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
    bytes << std::ifstream(source_root() + "/tests/golden/data/npy/" + name, std::ios::binary).rdbuf();
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

}  // namespace images
