// Sizes of images, and what preprocessor_config.json says of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "drawn_images.hpp"
#include "error_of.hpp"
#include "folders.hpp"

namespace images {

using namespace xtape;
using test::error_of;
using test::Folder;

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
