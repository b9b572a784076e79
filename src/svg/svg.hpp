/// Pictures for papers and pages: curves and boxes on axes, bars, and heat maps, as the text of an SVG file. The same
/// data gives the same bytes. Texts are shown literally: markup in them is escaped, control characters become their
/// pictures (␊), and bytes that are not UTF-8 become U+FFFD. The colours can be told apart by the colour-blind.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace xtape::svg {

struct Point {
  double x, y;
};

struct Axis {
  std::string title = {};
  bool log = false;                     ///< Values of 0 and below are then not drawn.
  std::optional<double> low{}, high{};  ///< The ends of the axis. Default: those of what is drawn, and some space.
};

enum class Style {
  faint,   ///< a thin, light line, behind all others
  solid,   ///< a line
  dashed,  ///< a dashed line, with a dot for each point
  dots,    ///< a dot for each point
  ring,    ///< a ring around each point
  stems    ///< a light line from the lower end of the axis to each point
};

/// Points that belong together. Points that are not finite interrupt a line.
struct Curve {
  std::vector<Point> points;
  Style style = Style::solid;
  std::size_t colour = 0;  ///< The number of a colour. There are eight, which repeat.
  std::string name = {};   ///< In the legend. Empty: not there.
};

/// A rectangle in the coordinates of the axes.
struct Box {
  double left, right, low, high;
  std::size_t colour = 0;
  std::string about = {};  ///< Shown where the mouse is on the box.
  std::string label = {};  ///< In the middle of the box.
};

/// What a colour of boxes means.
struct Name {
  std::size_t colour;
  std::string text;
};

/// A text at a point.
struct Label {
  Point at;
  std::string text;
};

/// Curves and boxes on two axes.
struct Chart {
  std::string title = {};
  Axis x = {}, y = {};
  std::vector<Curve> curves = {};
  std::vector<Box> boxes = {};
  std::vector<Name> box_names = {};     ///< In the legend.
  std::vector<Point> bands = {};        ///< Grey strips behind all, from x to y on the x axis.
  std::vector<Label> labels = {};       ///< Written upwards from their points.
  std::vector<Label> rules = {};        ///< Dashed vertical lines, with their texts above the axes.
  std::vector<std::string> notes = {};  ///< Below the axes, in two columns.
  double width = 640, height = 360;     ///< Of the rectangle between the axes, in pixels.
};

/// Horizontal bars in groups.
struct Bars {
  struct Group {
    std::string name, about;
    std::vector<std::optional<double>> values;  ///< One for each series; at least 0.
  };
  std::string title;
  std::vector<std::string> series;
  std::vector<Group> groups;
  std::optional<Label> mark = {};  ///< A line at x of its point, with a text above.
  std::string note = {};
};

/// Matrices with the same rows and columns, next to each other.
struct HeatMaps {
  struct Map {
    std::string title;
    std::vector<double> values;   ///< Row-major. NaN: no value. Infinities are red.
    std::optional<Axis> scale{};  ///< Of its colours. If it has none, it shares those of all such maps, from 0.
  };
  std::string title;
  std::string row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<double> column_numbers = {};  ///< Ascending; in place of `columns`.
  std::vector<Map> maps;
};

std::string drawn(const Chart& chart);
std::string drawn(const Bars& bars);
std::string drawn(const HeatMaps& maps);

}  // namespace xtape::svg
