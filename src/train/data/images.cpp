// Data of kind "images": a row is an image and its label.
#include <algorithm>

#include "base/system/durable.hpp"
#include "data/images/image_files.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
constexpr Range side = {0, most_side};

/// Reads a number, or a list of one for each channel.
void read_numbers(Section& section, const std::string& name, std::vector<double>& numbers) {
  const Json& value = section.value(name);
  if (value.is_null()) return;
  numbers.clear();
  for (const Json& each : value.is_array() ? value : Json::array({value})) {
    if (!each.is_number())
      section.fail(name, "must be a number, or a list of one for each channel, not " + value.dump());
    numbers.push_back(each.get<double>());
  }
}

}  // namespace

const Keys<ImageOptions> normalise_keys = {
    {{{"mean", "number, list", "`0`", "subtracted from pixels in [0, 1]: a number, or one for each channel",
       [](Section& section, const std::string& name, ImageOptions& images) {
         read_numbers(section, name, images.mean);
       }},
      {"std", "number, list; above 0", "`1`", "the divisor after that: a number, or one for each channel",
       [](Section& section, const std::string& name, ImageOptions& images) {
         read_numbers(section, name, images.deviation);
         for (const double each : images.deviation)
           if (!(each > 0)) section.fail(name, "must be above 0");
       }}}}};

const Keys<ImageResize> resize_keys = {
    {{{"height", &ImageResize::height, "the height; needs `width`", side},
      {"width", &ImageResize::width, "the width; needs `height`", side},
      {"shorter", &ImageResize::shorter, "the shorter side; replaces `height` and `width`", side},
      {"filter", &ImageResize::filter, "the interpolation", Names{"lanczos", "bilinear", "bicubic"}},
      {"middle_height", &ImageResize::middle_height, "the height of the middle part; needs `middle_width`", side},
      {"middle_width", &ImageResize::middle_width, "the width of the middle part; needs `middle_height`", side}}}};

namespace {
void read_resize(Section& section, const std::string& name, Recipe::Data& data) {
  ImageResize& resize = data.resize;
  if (section.value(name).is_number()) {
    section.read(name, resize.height, {1, most_side});
    resize.width = resize.height;  // a square
    return;
  }
  Section sizes = section.section(name);
  read_section(sizes, resize_keys, resize);
  if ((resize.height == 0) != (resize.width == 0)) sizes.fail("", "needs both 'height' and 'width', or neither");
  if ((resize.middle_height == 0) != (resize.middle_width == 0))
    sizes.fail("", "needs both 'middle_height' and 'middle_width', or neither");
  if (resize.height > 0 && resize.shorter > 0) sizes.fail("shorter", "replaces 'height' and 'width'");
}

/// Completes the preparation of images with the settings of the folder from which the recipe starts.
void prepare_as_folder(const Section& section, Recipe& recipe) {
  const bool has_resize = section.has("resize"), has_numbers = section.has("normalise");
  if (recipe.from.empty() || (has_resize && has_numbers)) return;
  if (!path_exists(path_in(recipe.from, preparation_file))) return;
  const ImagePreparation preparation = read_image_preparation(recipe.from);
  if (!has_resize) recipe.data.resize = preparation.resize;
  if (has_numbers) return;
  recipe.data.images.mean = preparation.numbers.mean;
  recipe.data.images.deviation = preparation.numbers.deviation;
}

/// Returns the images with their labels as indices in `names`.
Images labelled_as(Images images, const std::vector<std::string>& names) {
  relabel(images.labels.data(), images.size(), images.names, names, [&](std::size_t row) { return images.place(row); });
  images.names = names;
  return images;
}

struct ImageData final : DataKind {
  ImageData() : DataKind({.name = "images", .task = Task::images, .unit = "images", .has_tokens = false}) {
    using Data = Recipe::Data;
    keys = {{{file_key("images", "a folder with a subfolder for each label, or a file", "string"),
              {"channels", "1, 3", "`3`", "folders: 1 (grey) or 3 (red, green, blue)", read_channels},
              {"flip", part(&Data::images, &ImageOptions::flip),
               "training mirrors each image, left to right, with probability 1/2", may_change},
              {"crop", part(&Data::images, &ImageOptions::crop),
               "training shifts each image by up to this many pixels; uncovered pixels are black", Range{0, most_side},
               may_change},
              {"resize", "integer, section", "the size of the files", "the size of the images; a number means a square",
               read_resize},
              {"normalise", "section", "", "how pixels become numbers",
               [](Section& section, const std::string& name, Data& data) {
                 read_section(section.section(name), normalise_keys, data.images);
               }}}}};
  }

  static void read_channels(Section& section, const std::string& name, Recipe::Data& data) {
    section.read(name, data.channels, {1, 3});
    if (data.channels == 2) section.fail(name, "must be 1 (grey) or 3 (red, green, blue)");
  }

  void finish(const Section& section, Recipe& recipe) const override { prepare_as_folder(section, recipe); }

  /// Writes the preparation of the images, which the folder may have completed.
  void complete(const Recipe& recipe, const Batches&, Json& json) const override {
    const ImageResize& resize = recipe.data.resize;
    constexpr const char* filters[] = {"lanczos", "bilinear", "bicubic"};
    Json sizes = Json::object();
    for (const auto& [key, size] : {std::pair("height", resize.height),
                                    {"width", resize.width},
                                    {"shorter", resize.shorter},
                                    {"middle_height", resize.middle_height},
                                    {"middle_width", resize.middle_width}})
      if (size > 0) sizes[key] = size;
    if (resize.height > 0 || resize.shorter > 0) sizes["filter"] = filters[static_cast<int>(resize.filter)];
    json["resize"] = sizes;
    json["normalise"] = {{"mean", recipe.data.images.mean}, {"std", recipe.data.images.deviation}};
  }

  std::vector<std::string> size_names(const Recipe::Data&) const override {
    return {"labels", "channels", "height", "width"};
  }

  void add_sizes(const Tokenizers&, const Batches& batches, Named<std::int64_t>& sizes) const override {
    const BatchArrays batch = batches.blank();
    const Shape& shape = batch.at("images").shape();
    for (const auto& [name, axis] : {std::pair("channels", 1), {"height", 2}, {"width", 3}})
      sizes.add(name, shape[axis]);
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    split.images = read_images(part.files[0], data.channels, data.resize);
  }

  void divide(const Recipe::Data& data, DataSplit& training, DataSplit& validation) const override {
    const HeldOut rows = hold_out(data, training, validation);
    Images& images = training.images;
    Images& rest = validation.images;
    rest = {images.shape, {}, {}, images.names, images.files, validation.numbers};
    images.numbers = training.numbers;
    move_rows(rows, images.pixels, rest.pixels, images.shape.pixels());
    move_rows(rows, images.labels, rest.labels);
    if (images.files.size() > 1) move_rows(rows, images.files, rest.files);
  }

  Tokenizers tokenizers(const Recipe&, const DataSplit& training) const override {
    return {nullptr, nullptr, training.images.names};
  }

  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, const DataSplit& training,
                                   const DataSplit& evaluated) const override {
    return std::make_unique<ImageBatches>(
        labelled_as(training.images, tokenizers.labels), labelled_as(evaluated.images, tokenizers.labels),
        ImageBatchesOptions{recipe.batch_size, recipe.trainer.seed, recipe.data.images});
  }

  /// If the model reads images of one or three channels, writes their preparation. For other numbers of channels,
  /// removes its file.
  void write_export(const Model& model, const Recipe& recipe, const std::string& folder) const override {
    const std::int64_t channels =
        model.hyper().has("channels") ? model.hyper().integer("channels") : recipe.data.channels;
    if (channels == 1 || channels == 3)
      write_image_preparation({recipe.data.resize, recipe.data.images}, channels, folder);
    else
      remove_if_possible(path_in(folder, preparation_file));
  }
};
}  // namespace

const DataKind& image_data() {
  static const ImageData kind;
  return kind;
}

}  // namespace xtape::train
