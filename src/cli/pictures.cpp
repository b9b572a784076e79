#include "cli/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <unordered_map>

#include "base/arrays/lengths.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "cli/play_of.hpp"
#include "inspect/failing.hpp"
#include "xtape/op/op.hpp"
#include "xtape/player.hpp"

namespace xtape::cli {

void add_picture(CLI::App& command, std::string& path, const std::string& preset, const std::string& about) {
  command.add_option("--out", path, about.empty() ? "The picture to write: FILE.svg (default: " + preset + ")" : about)
      ->type_name("FILE.svg")
      ->check([](const std::string& file) {
        return file.ends_with(".svg") ? ""
                                      : "pictures are SVG files: the name must end in .svg, not '" + file +
                                            "'; rsvg-convert -f pdf PICTURE.svg -o PICTURE.pdf converts them";
      });
}

std::string picture_path(const std::string& path, const std::string& preset) {
  if (!path.empty()) return path;
  std::cout << preset << '\n';
  return preset;
}

namespace {

/// A kind of number, drawn in one map.
struct MapKind {
  const char *key, *title;
  bool log;  ///< Whether its colours are on a logarithmic scale. If not, the number is a fraction from 0 to 1.
};
constexpr MapKind map_kinds[] = {{"largest", "largest value", true},
                                 {"gradient_largest", "largest gradient", true},
                                 {"zeros", "share of zeros", false},
                                 {"saturated", "share saturated", false},
                                 {"masked_rows", "share of masked rows", false}};

}  // namespace

svg::HeatMaps maps_of_statistics(const std::vector<train::Measured>& lines, const std::string& run) {
  svg::HeatMaps maps;
  std::unordered_map<std::string, std::size_t> row_of;
  std::vector<const train::Measured*> updates;
  for (const train::Measured& line : lines) {
    if (line.statistics.empty()) continue;
    updates.push_back(&line);
    for (const auto& [module, numbers] : line.statistics)
      if (row_of.emplace(module, maps.rows.size()).second) maps.rows.push_back(module);
  }
  if (updates.empty())
    throw WrongInput(run + " has no statistics of modules: train with --statistics, or with 'statistics_every'");
  constexpr std::size_t most_updates = 160;  // more columns could not be told apart
  const std::size_t interval = ceiling(updates.size(), most_updates);
  std::vector<const train::Measured*> kept;  // includes the last update, which may be the one that failed
  for (std::size_t i = 0; i < updates.size(); ++i)
    if ((updates.size() - 1 - i) % interval == 0) kept.push_back(updates[i]);
  maps.column_name = "update";
  for (const train::Measured* update : kept) maps.column_numbers.push_back(static_cast<double>(update->step));
  for (const MapKind& kind : map_kinds) {
    svg::HeatMaps::Map map{kind.title, std::vector<double>(maps.rows.size() * kept.size(), NAN)};
    map.scale = kind.log ? svg::Axis{.log = true} : svg::Axis{.low = 0, .high = 1};
    bool any = false;
    for (std::size_t column = 0; column < kept.size(); ++column)
      for (const auto& [module, numbers] : kept[column]->statistics)
        for (const auto& [key, value] : numbers)
          if (key == kind.key) {
            map.values[row_of.at(module) * kept.size() + column] =
                std::isfinite(value) ? value : HUGE_VAL;  // NaN: not finite
            any = true;
          }
    if (any) maps.maps.push_back(std::move(map));
  }
  if (maps.maps.empty())
    throw WrongInput(
        run + " has no statistics that are drawn: " + joined(map_kinds, [](const MapKind& kind) { return kind.key; }));
  return maps;
}

namespace {

/// Returns "loss (entropy.json, function 'loss', line 21)" for a site that names the file with its folder.
std::string without_folder(const std::string& site) {
  const std::size_t open = site.find('('), slash = site.find_last_of('/');
  return open == std::string::npos || slash == std::string::npos || slash < open
             ? site
             : site.substr(0, open + 1) + site.substr(slash + 1);
}

/// The part of arrays that is drawn: elements around one along the last two axes.
class Window {
 public:
  /// `element` is an index into `shape`, or empty for the first.
  Window(const Shape& shape, std::vector<std::int64_t> element) : shape_(shape), element_(std::move(element)) {
    element_.resize(shape.size(), 0);
    const std::size_t rank = shape.size();
    if (rank > 0) columns = part(shape[rank - 1], element_[rank - 1]);
    if (rank > 1) rows = part(shape[rank - 2], element_[rank - 2]);
  }
  /// Whether an array has the last axes of the window, and elements at the others.
  bool fits(const Shape& shape) const {
    const std::size_t rank = shape.size();
    if (rank > shape_.size() || count_of(shape) == 0) return false;
    for (std::size_t axis = 1; axis <= 2; ++axis)
      if (from_end(shape, axis) != from_end(shape_, axis)) return false;
    return true;
  }
  /// Returns the elements in the window, row by row, at the element's index along the other axes.
  std::vector<double> of(const ArrayView& array) const {
    if (!array.layout().contiguous()) return of(Array(array));
    const Shape shape = array.shape();
    std::int64_t matrix = 0;
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis)
      matrix = matrix * shape[axis] + std::min(element_[axis + element_.size() - shape.size()], shape[axis] - 1);
    const std::int64_t high = from_end(shape, 2), wide = from_end(shape, 1);
    std::vector<double> values;
    visit_elements(array, [&](const auto* elements) {
      for (std::int64_t row = rows.first; row < rows.second; ++row)
        for (std::int64_t column = columns.first; column < columns.second; ++column) {
          const auto value = static_cast<double>(elements[(matrix * high + row) * wide + column]);
          values.push_back(std::isfinite(value) ? value : HUGE_VAL);
        }
    });
    return values;
  }

  std::pair<std::int64_t, std::int64_t> rows{0, 1}, columns{0, 1};  ///< The first and the end.

 private:
  /// The size of an axis, counted from the last, which is 1. An axis that the shape lacks has the size 1.
  static std::int64_t from_end(const Shape& shape, std::size_t axis) {
    return axis > shape.size() ? 1 : shape[shape.size() - axis];
  }
  static std::pair<std::int64_t, std::int64_t> part(std::int64_t size, std::int64_t at) {
    constexpr std::int64_t most = 64;
    const std::int64_t first = std::clamp<std::int64_t>(at - most / 2, 0, std::max<std::int64_t>(0, size - most));
    return {first, std::min(size, first + most)};
  }
  Shape shape_;
  std::vector<std::int64_t> element_;
};

/// Returns an axis from the least to the largest finite value.
svg::Axis ends_of(const std::vector<double>& values) {
  svg::Axis axis;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    axis.low = std::min(axis.low.value_or(value), value);
    axis.high = std::max(axis.high.value_or(value), value);
  }
  return axis;
}

}  // namespace

svg::HeatMaps maps_of_failure(const Capsule& capsule) {
  RecordedPlay play = recorded_play(capsule);
  const Window window(failing_output(capsule).shape(), capsule.failure.element);
  Vars drawn;
  for (std::size_t i = 0; i < play.tape.size(); ++i) {
    const Node& node = play.tape.node(i);
    const bool is_played = !capsule.failure.error || node.op == &parameter_op();
    if (is_played && !node.outputs.empty() && window.fits(node.outputs[0].shape))
      drawn.push_back(play.tape.var({static_cast<std::int32_t>(i), 0}));
  }
  if (drawn.empty()) throw WorkFailed("there is nothing to draw: no operand has the shape of the failing output");
  Player player(play.tape, drawn, play.options);
  player.play(feeds_of(play), play.step);
  svg::HeatMaps maps;
  maps.title = capsule.failure.what + " in " + capsule.failure.op + ": " + without_folder(capsule.failure.site);
  for (std::int64_t row = window.rows.first; row < window.rows.second; ++row)
    maps.rows.push_back(row % ceiling(window.rows.second - window.rows.first, 10) == 0 ? std::to_string(row) : "");
  for (std::int64_t column = window.columns.first; column < window.columns.second; ++column)
    maps.column_numbers.push_back(static_cast<double>(column));
  for (const Var& var : drawn) {
    const std::string& name = var.node().op == &parameter_op() ? var.node().name : var.node().op->name;
    const std::string site = to_string(var.node().site);
    const std::size_t line = site.rfind(", line ");
    svg::HeatMaps::Map& map = maps.maps.emplace_back();
    map.title = name.substr(name.find(' ') + 1) +
                (line == std::string::npos ? "" : site.substr(line, site.find(')', line) - line));
    map.values = window.of(player.view(var));
    map.scale = ends_of(map.values);
  }
  return maps;
}

}  // namespace xtape::cli
