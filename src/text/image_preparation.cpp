// Reads preprocessor_config.json of a published model, which specifies what transformers does with images before the
// model reads them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "durable.hpp"
#include "files.hpp"
#include "image_files.hpp"
#include "json_text.hpp"

namespace xtape {

namespace {
constexpr std::int64_t first_filter = 1;  // ImageFilter has the order of Pillow's numbers, starting at this number

/// Keys that do not affect the numbers of an image, or that describe what is always done: images are converted to red,
/// green and blue.
constexpr const char* without_effect[] = {
    "image_processor_type",  "feature_extractor_type", "processor_class", "do_convert_rgb",   "data_format",
    "input_data_format",     "return_tensors",         "device",          "disable_grouping", "auto_map",
    "_valid_processor_keys", "default_to_square"};
/// Keys that are read.
constexpr const char* with_effect[] = {"do_resize",  "size",         "resample",       "do_center_crop", "crop_size",
                                       "do_rescale", "do_normalize", "rescale_factor", "image_mean",     "image_std"};

template <std::size_t n>
bool is_one_of(const std::string& key, const char* const (&names)[n]) {
  return std::find(names, names + n, key) != names + n;
}

class Reader {
 public:
  explicit Reader(const JsonNode& root) : root_(root) {
    if (!root.is_object()) root.fail("an object belongs here");
    for (const auto& [key, value] : root.entries()) {
      if (is_one_of(key, with_effect) || is_one_of(key, without_effect) || value.is_null()) continue;
      if (value.json() != false)
        value.fail_at_key("'" + key + "' is a way of preparing images that is not supported; supported are " +
                          "do_resize with size and resample, do_center_crop with crop_size, do_rescale with " +
                          "rescale_factor, and do_normalize with image_mean and image_std");
    }
    for (const char* key : {"image_processor_type", "feature_extractor_type"})
      if (root.has(key) && root.at(key).is_string()) type_ = root.at(key).text();
    of_vit_ = type_.empty() || type_.starts_with("ViT");
  }

  ImagePreparation read() const {
    ImagePreparation made;
    if (flag("do_resize", true)) read_resize(made.resize);
    if (flag("do_center_crop", false)) {
      const std::optional<JsonNode> size = value("crop_size");
      if (!size) fail_missing("crop_size");
      std::tie(made.resize.middle_height, made.resize.middle_width) = sides(*size);
    }
    // The numbers are (pixel · factor - mean) / deviation. ImageOptions has the fixed factor 1 / 255.
    const std::optional<JsonNode> factor_node = value("rescale_factor");
    const double factor = !flag("do_rescale", true) ? 1 : factor_node ? factor_node->number() : 1 / 255.0;
    const double scale = factor * 255;
    if (!(scale > 0) || !std::isfinite(scale)) factor_node->fail("'rescale_factor' must be above 0");
    const bool normalises = flag("do_normalize", true);
    made.numbers.mean = normalises ? numbers("image_mean") : std::vector<double>{0};
    made.numbers.deviation = normalises ? numbers("image_std") : std::vector<double>{1};
    for (std::vector<double>* list : {&made.numbers.mean, &made.numbers.deviation})
      for (double& each : *list) {
        each /= scale;
        if (!std::isfinite(each) || (list == &made.numbers.deviation && !(each > 0)))
          root_.fail("the numbers of 'rescale_factor', 'image_mean' and 'image_std' are too far from each other");
      }
    return made;
  }

 private:
  std::optional<JsonNode> value(const char* key) const {
    if (!root_.has(key) || root_.at(key).is_null()) return std::nullopt;
    return root_.at(key);
  }
  [[noreturn]] void fail_missing(const std::string& key) const {
    root_.fail("the key '" + key + "' is missing" +
               (type_.empty() ? "" : ", whose default for " + type_ + " is not known here") + ": write it");
  }
  /// Returns a flag. Defaults are known only for ViT.
  bool flag(const char* key, bool otherwise) const {
    if (const auto found = value(key)) return found->flag();
    if (!of_vit_ && std::string(key) == "do_center_crop") fail_missing(key);
    return otherwise;
  }
  std::pair<std::int64_t, std::int64_t> sides(const JsonNode& size) const {
    const auto side = [](const JsonNode& node) { return node.integer(1, most_side); };
    if (size.is_object()) {
      size.only({"height", "width"});
      return {side(size.at("height")), side(size.at("width"))};
    }
    if (!size.is_array()) return {side(size), side(size)};
    const std::vector<JsonNode> both = size.elements();
    if (both.size() != 2) size.fail("a list has a height and a width");
    return {side(both[0]), side(both[1])};
  }
  void read_resize(ImageResize& resize) const {
    if (const auto resample = value("resample")) {
      if (!resample->json().is_number_integer() || resample->json() < first_filter ||
          resample->json() > first_filter + 2)
        resample->fail("'resample' must be 1 (Lanczos), 2 (bilinear) or 3 (bicubic)");
      resize.filter = static_cast<ImageFilter>(resample->integer(first_filter, first_filter + 2) - first_filter);
    } else if (!of_vit_) {
      fail_missing("resample");
    }
    const std::optional<JsonNode> size = value("size");
    if (!size && !of_vit_) fail_missing("size");
    if (!size) {
      resize.height = resize.width = 224;
    } else if (size->is_object() && size->has("shortest_edge")) {
      size->only({"shortest_edge"});
      resize.shorter = size->at("shortest_edge").integer(1, most_side);
    } else if (!size->is_object() && !size->is_array() && !of_vit_ && !type_.starts_with("DeiT")) {
      size->fail(R"(for )" + type_ + R"( a number has no one meaning: write {"height": …, "width": …} or )" +
                 R"({"shortest_edge": …})");
    } else {
      std::tie(resize.height, resize.width) = sides(*size);
    }
  }
  /// Returns one number, or one number for each channel. The default is 0.5.
  std::vector<double> numbers(const char* key) const {
    const auto found = value(key);
    if (!found && !of_vit_) fail_missing(key);
    if (!found) return {0.5};
    std::vector<double> all;
    if (!found->is_array()) all.push_back(found->number());
    if (found->is_array())
      for (const JsonNode& each : found->elements()) all.push_back(each.number());
    if (all.size() != 1 && all.size() != 3)
      found->fail("'" + std::string(key) + "' must be a number, or one for each channel");
    for (const double each : all)
      if (!std::isfinite(each) || (std::string(key) == "image_std" && !(each > 0)))
        found->fail("'" + std::string(key) + "' must be " + (std::string(key) == "image_std" ? "above 0" : "finite"));
    return all;
  }

  JsonNode root_;
  std::string type_;
  bool of_vit_ = true;
};
/// Returns one number for each channel.
std::vector<double> spread(const std::vector<double>& numbers, std::int64_t channels) {
  return numbers.size() == 1 ? std::vector<double>(static_cast<std::size_t>(channels), numbers[0]) : numbers;
}
}  // namespace

ImagePreparation read_image_preparation(const std::string& folder) {
  const std::string file = path_in(folder, preparation_file);
  if (!path_exists(file))
    throw FileError(folder + " has no " + preparation_file +
                    R"(, which says how images are prepared; for images of 224 x 224 pixels with numbers from -1 to 1 )"
                    R"(it is {"size": {"height": 224, "width": 224}, "image_mean": 0.5, "image_std": 0.5})");
  return Reader(JsonNode(read_file(file), file, JsonErrors::definition)).read();
}

void write_image_preparation(const ImagePreparation& preparation, std::int64_t channels, const std::string& folder) {
  check_channels(channels);
  const ImageResize& resize = preparation.resize;
  Json json = {{"image_processor_type", "ViTImageProcessor"}};
  json["do_resize"] = resize.height > 0 || resize.shorter > 0;
  if (resize.height > 0) json["size"] = {{"height", resize.height}, {"width", resize.width}};
  if (resize.shorter > 0) json["size"] = {{"shortest_edge", resize.shorter}};
  json["resample"] = first_filter + static_cast<int>(resize.filter);
  json["do_center_crop"] = resize.middle_height > 0;
  if (resize.middle_height > 0) json["crop_size"] = {{"height", resize.middle_height}, {"width", resize.middle_width}};
  json["do_rescale"] = json["do_normalize"] = true;
  json["rescale_factor"] = 1 / 255.0;
  json["image_mean"] = spread(preparation.numbers.mean, channels);
  json["image_std"] = spread(preparation.numbers.deviation, channels);
  write_file(path_in(folder, preparation_file), indented(json));
}

}  // namespace xtape
