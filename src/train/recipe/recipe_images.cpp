// Reads the image settings in the section "data" of a recipe.
#include "base/files/durable.hpp"
#include "data/images/image_files.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
/// Reads {"height": 224, "width": 224} or {"shorter": 256, "middle_height": 224, "middle_width": 224}.
void read_resize(Section section, ImageResize& resize) {
  section.read("height", resize.height, {0, most_side});
  section.read("width", resize.width, {0, most_side});
  section.read("shorter", resize.shorter, {0, most_side});
  section.read("filter", resize.filter, {"lanczos", "bilinear", "bicubic"});
  section.read("middle_height", resize.middle_height, {0, most_side});
  section.read("middle_width", resize.middle_width, {0, most_side});
  section.done();
  if ((resize.height == 0) != (resize.width == 0)) section.fail("", "needs both 'height' and 'width', or neither");
  if ((resize.middle_height == 0) != (resize.middle_width == 0))
    section.fail("", "needs both 'middle_height' and 'middle_width', or neither");
  if (resize.height > 0 && resize.shorter > 0) section.fail("shorter", "replaces 'height' and 'width'");
}
}  // namespace

void read_image_data(Section& section, Recipe::Data& data) {
  section.read("channels", data.channels, {1, 3});
  if (data.channels == 2) section.fail("channels", "must be 1 (grey) or 3 (red, green, blue)");
  section.read("flip", data.images.flip);
  section.read("crop", data.images.crop, {0, most_side});
  if (section.value("resize").is_number()) {
    section.read("resize", data.resize.height, {1, most_side});
    data.resize.width = data.resize.height;  // a square
  } else {
    read_resize(section.section("resize"), data.resize);
  }
  Section numbers = section.section("normalise");
  for (const auto& [key, list] : {std::pair("mean", &data.images.mean), {"std", &data.images.deviation}}) {
    const Json& value = numbers.value(key);
    if (value.is_null()) continue;
    list->clear();
    for (const Json& each : value.is_array() ? value : Json::array({value})) {
      if (!each.is_number())
        numbers.fail(key, "must be a number, or a list of one for each channel, not " + value.dump());
      list->push_back(each.get<double>());
      if (list == &data.images.deviation && !(list->back() > 0)) numbers.fail(key, "must be above 0");
    }
  }
  numbers.done();
}

void prepare_as_folder(const Json& data, Recipe& recipe) {
  const bool has_resize = data.contains("resize"), has_numbers = data.contains("normalise");
  if (recipe.from.empty() || (has_resize && has_numbers)) return;
  if (!path_exists(path_in(recipe.from, preparation_file))) return;
  const ImagePreparation preparation = read_image_preparation(recipe.from);
  if (!has_resize) recipe.data.resize = preparation.resize;
  if (has_numbers) return;
  recipe.data.images.mean = preparation.numbers.mean;
  recipe.data.images.deviation = preparation.numbers.deviation;
}

void write_preparation(const Recipe::Data& data, Json& json) {
  const ImageResize& resize = data.resize;
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
  json["normalise"] = {{"mean", data.images.mean}, {"std", data.images.deviation}};
}

}  // namespace xtape::train
