// Misuse of images and of their batches.
#include "folders.hpp"
#include "misuse.hpp"

using namespace xtape;

namespace misuse::images {
namespace {
struct World {
  test::Folder folder;
  Images image = {{1, 2, 1}, {5, 6}, {0}, {"a"}, {"a.png"}};
  BatchArrays blank;
  ImageBatches batches() const { return {image, image, {}}; }
  std::string prepared(const std::string& text) const {
    folder.write(preparation_file, text);
    return folder.path();
  }
};

std::vector<Row> rows_of_images(World& w) {
  const auto resize = [](std::int64_t height, std::int64_t width, std::int64_t shorter = 0) {
    return ImageResize{height, width, shorter, ImageFilter::bilinear, 0, 0};
  };
  return {
      {"read_images", "no such file", "/nowhere", [] { read_images("/nowhere"); }},
      {"read_images", "two channels", "1 channel (grey) or 3", [&w] { read_images(w.folder.path(), 2); }},
      {"read_images", "no images", "has no images", [&w] { read_images(w.folder.path()); }},
      {"read_image", "no such file", "/nowhere", [] { read_image("/nowhere"); }},
      {"read_image", "a folder", "cannot read", [&w] { read_image(w.folder.path()); }},
      {"read_image", "no channel", "1 channel (grey) or 3", [] { read_image("a.png", 0); }},
      {"read_image", "a negative size", "not -1",
       [&w, &resize] { read_image(w.folder.write("a.pgm", "P5 1 1 255 a"), 1, resize(-1, -1)); }},
      {"resized", "no image", "", [&resize] { CHECK(resized({}, resize(3, 3)).size() == 0); }},
      {"resized", "pixels of no shape", "2 pixels are no images with",
       [] {
         resized({{1, 0, 0}, {1, 2}, {}, {}, {}}, {});
       }},
      {"resized", "a shape of no pixels", "1 pixels are no images with",
       [] {
         resized({{1, INT64_MAX, INT64_MAX}, {1}, {}, {}, {}}, {});
       }},
      {"resized", "a negative shape", "pixels are no images with",
       [] {
         resized({{-1, 1, -1}, {1}, {}, {}, {}}, {});
       }},
      {"resized", "vast", "1 to 65536 pixels", [&w, &resize] { resized(w.image, resize(INT64_MAX, INT64_MAX)); }},
      {"resized", "one side", "not one of them", [&w, &resize] { resized(w.image, resize(3, 0)); }},
      {"resized", "both ways", "not both", [&w, &resize] { resized(w.image, resize(3, 3, 3)); }},
      {"resized", "half of a middle", "not one of them", [&w] { resized(w.image, {.middle_height = 3}); }},
      {"read_image_preparation", "no such folder", "/nowhere has no", [] { read_image_preparation("/nowhere"); }},
      {"read_image_preparation", "an empty file", "preprocessor_config.json",
       [&w] { read_image_preparation(w.prepared("")); }},
      {"read_image_preparation", "two channels", "1 channel (grey) or 3",
       [&w] { read_image_preparation(w.prepared("{}"), 2); }},
      {"write_image_preparation", "no such folder", "/nowhere", [] { write_image_preparation({}, 3, "/nowhere"); }},
      {"write_image_preparation", "no channel", "1 channel (grey) or 3",
       [&w] { write_image_preparation({}, -1, w.folder.path()); }},
      {"image_array", "no image", "", [] { CHECK(image_array({}, {}).count() == 0); }},
      {"image_array", "no mean", "mean must have one number", [&w] { image_array(w.image, {.mean = {}}); }},
      {"image_array", "a deviation of 0", "deviation must be above 0",
       [&w] { image_array(w.image, {.deviation = {0}}); }},
      {"image_array", "a crop beyond the image", "crop must be 0 to 1", [&w] { image_array(w.image, {.crop = 2}); }},
      {"image_array", "pixels of no shape", "3 pixels are no images with",
       [] {
         image_array({{1, 2, 1}, {1, 2, 3}, {}, {}, {}}, {});
       }},
      {"Images::place", "no file", "", [] { CHECK(Images().place(9) == "image 10"); }},
      {"ImageBatches::ImageBatches", "empty", "the training split has no images", [] { ImageBatches({}, {}, {}); }},
      {"ImageBatches::ImageBatches", "a label beyond the names", "label 7",
       [&w] {
         w.image.labels[0] = 7;
         w.batches();
       }},
      {"ImageBatches::ImageBatches", "labels beyond the pixels", "2 pixels are no 2 images",
       [&w] {
         w.image.labels = {0, 0};
         w.batches();
       }},
      {"ImageBatches::training_place", "no such row", "",
       [&w] {
         CHECK(w.batches().training_place(0, "images", -1).empty());
         CHECK(w.batches().training_place(UINT64_MAX, "images", INT64_MAX).empty());
       }},
      {"ImageBatches::training", "another batch", "",
       [&w] {
         w.batches().training(UINT64_MAX, w.blank);
         CHECK(w.blank.at("images").count() == 2);
       }},
      {"ImageBatches::validation", "negative", "there is no validation batch -1",
       [&w] { w.batches().validation(-1, w.blank); }},
      {"ImageBatches::validation_sample", "another batch", "",
       [&w] { w.batches().validation_sample(UINT64_MAX, w.blank); }},
  };
}
}  // namespace

TEST_CASE("misuse of images is an Error, or works as the table says") {
  check_rows<World>(rows_of_images);
}

TEST_CASE("the table has every function of images that can be misused") {
  check_complete<World>(
      rows_of_images, {"images.hpp"},
      {"ImageShape::pixels", "Images::size", "to_string", "ImageBatches::rows", "ImageBatches::columns",
       "ImageBatches::blank", "ImageBatches::order", "ImageBatches::epoch_batches", "ImageBatches::validation_batches"},
      12);
}
}  // namespace misuse::images
