// Maps of numbers: heat maps of matrices, and the statistics of modules over the updates of a run.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/memory/lengths.hpp"
#include "base/messages/wording.hpp"
#include "cli/pictures.hpp"

namespace xtape::cli {

namespace {

/// The settings of all maps. The steps of the palette have about equal differences in lightness.
constexpr const char* frame =
    "set palette defined (0 '#f7fbff', 1 '#d6e6f4', 2 '#abd0e6', 3 '#6aaed6', 4 '#3787c0', 5 '#105ba4', 6 '#08306b')\n"
    "set border linecolor rgb '#808080'\nset tics scale 0\nunset key\n";

constexpr std::size_t longest_label = 30;  // characters; longer labels are truncated

/// Truncates a label to longest_label characters and an ellipsis.
std::string shortened(const std::string& label) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < label.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(label[at]) & 0xC0) != 0x80;
    if (begins && characters++ == longest_label) return label.substr(0, at) + "…";
  }
  return label;
}

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, text_width(shortened(label)));
  return width;
}

/// The layout of the picture, in pixels from the upper left corner. It is computed here, because gnuplot does not know
/// the size of text in an SVG file.
struct Places {
  double cell, font;             // a cell's side, and the size of labels
  double across, down;           // width and height of a map without labels
  double column_step, row_step;  // distance from one map to the next
  double side;                   // left margin that centres the maps below a wide title
  double left, top;              // corner of the first map
  std::size_t columns, rows;     // the grid of maps
  double width, height;          // size of the picture
  double bar, bar_height;        // the colour bar: left side and height
};

constexpr double title_font = 15, name_font = 13, edge = 14;

/// Returns the number of columns of maps for an aspect ratio near 3:2 with few empty positions in the last row.
std::size_t columns_for(std::size_t count, double width, double height) {
  std::size_t best = 1;
  double least = INFINITY;
  for (std::size_t columns = 1; columns <= count; ++columns) {
    const std::size_t rows = ceiling(count, columns);
    const double shape = width * static_cast<double>(columns) / (height * static_cast<double>(rows));
    const double left_over = static_cast<double>(columns * rows - count) / static_cast<double>(columns);
    const double badness = std::abs(std::log(shape / 1.5)) + left_over;
    if (badness < least) {
      least = badness;
      best = columns;
    }
  }
  return best;
}

Places places_of(const HeatMaps& maps) {
  const bool one = maps.maps.size() == 1;
  const auto most = static_cast<double>(std::max(maps.rows.size(), maps.columns.size()));
  Places p{};
  p.cell = one ? std::clamp(440 / most, 22.0, 44.0) : std::clamp(240 / most, 15.0, 30.0);
  p.font = one ? 13 : std::min(12.0, p.cell * 0.7);
  p.across = p.cell * static_cast<double>(maps.columns.size());
  p.down = p.cell * static_cast<double>(maps.rows.size());
  const double below = widest(maps.columns) * p.font * 0.71 + p.font;  // height of labels rotated by 45 degrees
  const double beside = widest(maps.rows) * p.font + 8;
  const double map_title = one ? 0 : p.font + 12;
  p.column_step = p.across + 16;
  p.row_step = p.down + map_title + 8;
  p.columns = columns_for(maps.maps.size(), p.column_step, p.row_step);
  p.rows = ceiling(maps.maps.size(), p.columns);
  p.left = edge + name_font + 10 + std::max(beside, below - p.cell / 2);
  p.top = edge + title_font + 14 + map_title;
  const double right = p.left + static_cast<double>(p.columns) * p.column_step - 16;
  const double bottom = p.top + static_cast<double>(p.rows) * p.row_step - map_title - 8;
  p.bar = right + 22;
  p.bar_height = std::clamp(bottom - p.top, 120.0, 300.0);
  const double wide = p.bar + 14 + 44 + edge;
  p.width = std::max(wide, text_width(maps.title) * title_font + 2 * edge);
  p.height = std::max(bottom + below + name_font + 10, p.top + p.bar_height) + edge;
  p.side = (p.width - wide) / 2;  // 0 unless the title is wider than the maps
  p.left += p.side;
  p.bar += p.side;
  return p;
}

/// x_at converts a horizontal position from pixels to a fraction of the picture's width. y_at converts a vertical
/// position from pixels to a fraction of the picture's height, counted from the bottom.
std::string x_at(const Places& p, double x) {
  return gnuplot_number(x / p.width);
}
std::string y_at(const Places& p, double y) {
  return gnuplot_number(1 - y / p.height);
}

std::string tics(const std::vector<std::string>& labels) {
  std::string list;
  for (std::size_t i = 0; i < labels.size(); ++i)
    list += (i == 0 ? "" : ", ") + gnuplot_tic(shortened(labels[i])) + " " + std::to_string(i);
  return "(" + list + ")";
}

/// Returns the upper end of the colour scale: the largest value, rounded up to a tenth, at least 0.1.
double top_of(const HeatMaps& maps) {
  double most = 0;
  for (const HeatMaps::Map& map : maps.maps)
    for (const double value : map.values) most = std::max(most, value);
  return std::max(0.1, std::ceil(most * 10 - 1e-4) / 10);
}

/// Writes the settings that all maps share.
void write_frame(std::ostream& out, const HeatMaps& maps, const Places& p) {
  const auto font = [](double size) { return " font '," + gnuplot_number(size) + "'"; };
  const double middle = p.left + (static_cast<double>(p.columns) * p.column_step - 16) / 2;
  const double centre = p.top + (static_cast<double>(p.rows - 1) * p.row_step + p.down) / 2;
  out << frame << "set cbrange [0:" << gnuplot_number(top_of(maps))
      << "]\nset cbtics format '%g' textcolor rgb '#202020'" << font(11) << '\n'
      << "set colorbox user origin screen " << x_at(p, p.bar) << "," << y_at(p, p.top + p.bar_height) << " size screen "
      << gnuplot_number(14 / p.width) << "," << gnuplot_number(p.bar_height / p.height) << '\n'
      << "set xrange [-0.5:" << maps.columns.size() << " - 0.5]\nset yrange [" << maps.rows.size() << " - 0.5:-0.5]\n"
      << "set label 1 " << gnuplot_string(maps.title) << " at screen 0.5," << y_at(p, edge + title_font / 2)
      << " center" << font(title_font) << '\n'
      << "set label 2 " << gnuplot_string(maps.column_name) << " at screen " << x_at(p, middle) << ","
      << y_at(p, p.height - edge - name_font / 2) << " center" << font(name_font) << '\n'
      << "set label 3 " << gnuplot_string(maps.row_name) << " at screen " << x_at(p, p.side + edge + name_font / 2)
      << "," << y_at(p, centre) << " center rotate by 90" << font(name_font) << '\n';
}

void write_map(std::ostream& out, const HeatMaps& maps, std::size_t number, const Places& p) {
  const HeatMaps::Map& map = maps.maps[number];
  const std::size_t column = number % p.columns, row = number / p.columns;
  const double left = p.left + static_cast<double>(column) * p.column_step;
  const double top = p.top + static_cast<double>(row) * p.row_step;
  const std::string font = " font '," + gnuplot_number(p.font) + "' textcolor rgb '#202020'";
  out << "set lmargin at screen " << x_at(p, left) << "\nset rmargin at screen " << x_at(p, left + p.across)
      << "\nset tmargin at screen " << y_at(p, top) << "\nset bmargin at screen " << y_at(p, top + p.down) << '\n';
  if (maps.maps.size() > 1) out << "set title " << gnuplot_string(map.title) << font << " offset 0,-0.6\n";
  // Only the maps of the first column and the last row have labels.
  const bool lowest = number + p.columns >= maps.maps.size();
  out << (lowest ? "set xtics " + tics(maps.columns) + " rotate by 45 right offset 0.3,0" + font : "unset xtics")
      << '\n'
      << (column == 0 ? "set ytics " + tics(maps.rows) + font : "unset ytics") << "\n$map << END\n";
  for (std::size_t i = 0; i < map.values.size(); ++i)
    out << i % maps.columns.size() << ' ' << i / maps.columns.size() << ' ' << gnuplot_number(map.values[i]) << '\n';
  out << "END\nplot $map using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid noborder fillcolor palette\n"
      << "unset colorbox\nunset label 1\nunset label 2\nunset label 3\n";  // these are drawn only with the first map
}

}  // namespace

void draw(const HeatMaps& maps, const std::string& path) {
  const Places p = places_of(maps);
  std::ostringstream script;
  write_frame(script, maps, p);
  script << "set multiplot\n";
  for (std::size_t number = 0; number < maps.maps.size(); ++number) write_map(script, maps, number, p);
  script << "unset multiplot\n";
  draw_svg(script.str(), static_cast<int>(p.width), static_cast<int>(p.height), path);
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
  script << frame << "set yrange [" << picture.modules.size() << " - 0.5:-0.5]\nset xrange ["
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
