#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/memory/lengths.hpp"
#include "base/messages/wording.hpp"
#include "cli/pictures.hpp"

namespace xtape::cli {

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

struct StatisticsCell {
  std::int64_t step;
  std::size_t module;
  double value;
};

struct StatisticsPicture {
  std::vector<std::string> modules;
  std::vector<const train::Measured*> updates;

  explicit StatisticsPicture(const std::vector<train::Measured>& lines) {
    for (const train::Measured& line : lines) {
      if (line.statistics.empty()) continue;
      updates.push_back(&line);
      for (const auto& each : line.statistics)
        if (!contains(modules, each.first)) modules.push_back(each.first);
    }
    constexpr std::size_t most_updates = 160;  // more columns could not be distinguished
    const std::size_t interval = ceiling(updates.size(), most_updates);
    std::vector<const train::Measured*> kept;  // includes the last update, which may be the one that failed
    for (std::size_t i = 0; i < updates.size(); ++i)
      if ((updates.size() - 1 - i) % interval == 0) kept.push_back(updates[i]);
    updates = kept;
  }

  std::vector<StatisticsCell> cells(const std::string& key) const {
    std::vector<StatisticsCell> found;
    for (const train::Measured* update : updates)
      for (const auto& [module, numbers] : update->statistics)
        for (const auto& [name, value] : numbers)
          if (name == key) {
            const auto row = std::ranges::find(modules, module) - modules.begin();
            found.push_back({update->step, static_cast<std::size_t>(row), value});
          }
    return found;
  }

  /// Returns half of the smallest distance between updates.
  double half_width() const {
    double least = 1;
    for (std::size_t i = 1; i < updates.size(); ++i) {
      const auto distance = static_cast<double>(updates[i]->step - updates[i - 1]->step);
      if (i == 1 || distance < least) least = distance;
    }
    return std::max(1.0, least) / 2;
  }
};

}  // namespace

void draw_statistics(const std::vector<train::Measured>& lines, const std::string& run, const std::string& path) {
  constexpr double row = 15, font = 10, map_width = 250, gap = 26, edge = 14, title = 34, below = 92;  // pixels
  const StatisticsPicture picture(lines);
  if (picture.updates.empty())
    throw WrongInput(run + " has no statistics of modules: train with --statistics, or with 'statistics_every'");
  std::vector<std::pair<MapKind, std::vector<StatisticsCell>>> maps;
  for (const MapKind& kind : map_kinds)
    if (std::vector<StatisticsCell> cells = picture.cells(kind.key); !cells.empty())
      maps.emplace_back(kind, std::move(cells));
  double label = 0;
  for (const std::string& module : picture.modules) label = std::max(label, text_width(module) * font);
  const double left = edge + label + 10, down = row * static_cast<double>(picture.modules.size());
  const double width = left + static_cast<double>(maps.size()) * (map_width + gap) + edge;
  const double height = title + down + below;
  const auto x = [&](double pixels) { return gnuplot_number(pixels / width); };
  const auto y = [&](double pixels) { return gnuplot_number(1 - pixels / height); };
  const std::string small = " font '," + gnuplot_number(font) + "' textcolor rgb '#202020'";
  const double half = picture.half_width();
  const std::string box = ":(" + gnuplot_number(half) + "):(0.5)";
  std::ostringstream script;
  script << "set palette defined (0 '#f7fbff', 1 '#d6e6f4', 2 '#abd0e6', 3 '#6aaed6', 4 '#3787c0', 5 '#105ba4', 6 "
            "'#08306b')\nset border linecolor rgb '#808080'\nset tics scale 0\nunset key\nset yrange ["
         << picture.modules.size() << " - 0.5:-0.5]\nset xrange ["
         << gnuplot_number(static_cast<double>(picture.updates.front()->step) - half) << ":"
         << gnuplot_number(static_cast<double>(picture.updates.back()->step) + half) << "]\nset ytics (";
  for (std::size_t i = 0; i < picture.modules.size(); ++i)
    script << (i == 0 ? "" : ", ") << gnuplot_tic(picture.modules[i]) << " " << i;
  script << ")" << small << "\nset xtics autofreq" << small << "\nset cbtics autofreq" << small
         << "\nset xlabel 'update'" << small << "\nset multiplot\n";
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const auto& [kind, cells] = maps[i];
    const double from = left + static_cast<double>(i) * (map_width + gap);
    std::ostringstream numbers, others;  // `others` contains NaN and infinities
    bool any = false;
    for (const StatisticsCell& cell : cells) {
      std::ostream& to = std::isfinite(cell.value) ? numbers : others;
      if (kind.log && cell.value <= 0) continue;  // white, because the value has no colour on a logarithmic scale
      any = any || std::isfinite(cell.value);
      to << cell.step << ' ' << cell.module << ' ' << (std::isfinite(cell.value) ? gnuplot_number(cell.value) : "0")
         << '\n';
    }
    script << "set lmargin at screen " << x(from) << "\nset rmargin at screen " << x(from + map_width)
           << "\nset tmargin at screen " << y(title) << "\nset bmargin at screen " << y(title + down) << "\nset title "
           << gnuplot_string(kind.title) << " font ',12' offset 0,-0.4\n"
           << (kind.log ? "set logscale cb\nset cbrange [*:*]\nset format cb '%.0g'\n"
                        : "unset logscale cb\nset cbrange [0:1]\nset format cb '%g'\n")
           << "set colorbox horizontal user origin screen " << x(from) << "," << y(title + down + 62) << " size screen "
           << gnuplot_number(map_width / width) << "," << gnuplot_number(10 / height) << "\n$numbers << END\n"
           << numbers.str() << "END\n$others << END\n"
           << others.str() << "END\nplot ";
    if (any) script << "$numbers using 1:2" << box << ":3 with boxxyerror fillstyle solid noborder fillcolor palette";
    if (!others.str().empty())
      script << (any ? ", " : "") << "$others using 1:2" << box
             << " with boxxyerror fillstyle solid noborder fillcolor rgb '#d7301f'";
    if (!any && others.str().empty()) script << "NaN";
    script << "\nunset ytics\n";  // the first map shows the names
  }
  script << "unset multiplot\n";
  draw_svg(script.str(), static_cast<int>(width), static_cast<int>(height), path);
}

}  // namespace xtape::cli
