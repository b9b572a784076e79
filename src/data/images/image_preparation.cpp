// Reads preprocessor_config.json of a published model. The file specifies how transformers prepares images for the
// model.
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "data/images/image_files.hpp"

namespace xtape {

namespace {
constexpr std::int64_t first_filter = 1;  // Pillow's number of the first ImageFilter; the others follow in order

/// Keys that do not affect the numbers of an image, and do_convert_rgb, because images are always converted to red,
/// green and blue.
constexpr const char* without_effect =
    "processor_class do_convert_rgb data_format input_data_format return_tensors device disable_grouping auto_map "
    "_valid_processor_keys";
/// Keys that are read.
constexpr const char* with_effect =
    "image_processor_type feature_extractor_type do_resize size default_to_square resample do_center_crop crop_size "
    "do_rescale do_normalize rescale_factor image_mean image_std";

/// The models whose processors interpret these keys in the same way. The name of a processor is the name of a model and
/// one of the endings in `processor_names`.
constexpr const char* known_models = "ViT DeiT CLIP Bit Beit Blip Siglip Pvt MobileNetV2";
constexpr const char* processor_names[] = {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil",
                                           "FeatureExtractor"};

class Reader {
 public:
  Reader(const JsonNode& root, std::int64_t channels) : root_(root), channels_(channels) {
    if (!root.is_object()) root.fail("an object belongs here");
    for (const auto& [key, value] : root.entries()) {
      if (is_one_of(with_effect, key) || is_one_of(without_effect, key) || value.is_null()) continue;
      if (value.json() != false)
        value.fail_at_key("'" + key + "' is a way of preparing images that is not supported; supported are " +
                          "do_resize with size and resample, do_center_crop with crop_size, do_rescale with " +
                          "rescale_factor, and do_normalize with image_mean and image_std");
    }
    for (const char* key : {"image_processor_type", "feature_extractor_type"})
      if (type_.empty() && root.has(key) && !root.at(key).is_null()) read_type(key, root.at(key));
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
    const bool rescales = flag("do_rescale", true);
    const std::optional<JsonNode> factor_node = rescales ? value("rescale_factor") : std::nullopt;
    const double factor = !rescales ? 1 : factor_node ? factor_node->number() : 1 / 255.0;
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
  void read_type(const std::string& key, const JsonNode& node) {
    type_ = node.text();
    for (const std::string name : processor_names)
      if (type_.ends_with(name)) model_ = type_.substr(0, type_.size() - name.size());
    if (!is_one_of(known_models, model_))
      node.fail("'" + key + "' is \"" + type_ + "\", which may prepare images in a way of its own: supported are " +
                "ImageProcessor, also with Fast or Pil behind it, and FeatureExtractor of " + known_models);
  }
  /// Returns the value of a key, or nothing if the key is missing. Fails if the value is null.
  std::optional<JsonNode> value(const char* key) const {
    if (!root_.has(key)) return std::nullopt;
    if (root_.at(key).is_null())
      root_.at(key).fail("'" + std::string(key) + "' is null, and the preparation that this file says needs it");
    return root_.at(key);
  }
  [[noreturn]] void fail_missing(const std::string& key) const {
    root_.fail("the key '" + key + "' is missing" +
               (type_.empty() ? "" : ", whose default for " + type_ + " is not known here") + ": write it");
  }
  bool is_vit() const { return model_ == "ViT"; }
  /// Returns a flag, or `otherwise` if the key is missing. A flag of null is false. Fails if do_center_crop is missing
  /// and the model is not ViT, because its default is then not known.
  bool flag(const char* key, bool otherwise) const {
    if (root_.has(key)) return !root_.at(key).is_null() && root_.at(key).flag();
    if (!is_vit() && std::string(key) == "do_center_crop") fail_missing(key);
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
    } else if (!is_vit()) {
      fail_missing("resample");
    }
    const std::optional<JsonNode> size = value("size");
    const bool is_number = size && !size->is_object() && !size->is_array();
    if (!size && !is_vit()) fail_missing("size");
    if (!size) {
      resize.height = resize.width = 224;
    } else if (size->is_object() && size->has("shortest_edge")) {
      size->only({"shortest_edge"});
      resize.shorter = size->at("shortest_edge").integer(1, most_side);
    } else if (is_number && !flag("default_to_square", true)) {
      resize.shorter = size->integer(1, most_side);
    } else if (is_number && !root_.has("default_to_square") && !is_vit() && model_ != "DeiT") {
      size->fail(R"(for )" + type_ + R"( a number has no one meaning: write {"height": …, "width": …} or )" +
                 R"({"shortest_edge": …})");
    } else {
      std::tie(resize.height, resize.width) = sides(*size);
    }
  }
  /// Returns one number, or one number for each channel. The default for ViT is 0.5. For other models, fails if the key
  /// is missing.
  std::vector<double> numbers(const char* key) const {
    const auto found = value(key);
    if (!found && !is_vit()) fail_missing(key);
    if (!found) return {0.5};
    std::vector<double> all;
    if (!found->is_array()) all.push_back(found->number());
    if (found->is_array())
      for (const JsonNode& each : found->elements()) all.push_back(each.number());
    if (all.size() != 1 && std::ssize(all) != channels_)
      found->fail("'" + std::string(key) + "' must be a number, or one for each channel, of which the model reads " +
                  std::to_string(channels_) + ", not " + std::to_string(all.size()));
    for (const double each : all)
      if (!std::isfinite(each) || (std::string(key) == "image_std" && !(each > 0)))
        found->fail("'" + std::string(key) + "' must be " + (std::string(key) == "image_std" ? "above 0" : "finite"));
    return all;
  }

  JsonNode root_;
  std::int64_t channels_;
  std::string type_, model_ = "ViT";
};
/// Returns one number for each channel.
std::vector<double> spread(const std::vector<double>& numbers, std::int64_t channels) {
  return numbers.size() == 1 ? std::vector<double>(static_cast<std::size_t>(channels), numbers[0]) : numbers;
}
}  // namespace

ImagePreparation read_image_preparation(const std::string& folder, std::int64_t channels) {
  check_channels(channels);
  const std::string file = path_in(folder, preparation_file);
  if (!path_exists(file))
    throw FileError(folder + " has no " + preparation_file +
                    R"(, which says how images are prepared; for images of 224 x 224 pixels with numbers from -1 to 1 )"
                    R"(it is {"size": {"height": 224, "width": 224}, "image_mean": 0.5, "image_std": 0.5})");
  return Reader(JsonNode(read_file(file), file, JsonErrors::definition), channels).read();
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
