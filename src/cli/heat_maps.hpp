/// Matrices as pictures.
#pragma once

#include <string>
#include <vector>

namespace xtape::cli {

/// Matrices with the same labels at their rows and columns, drawn side by side on one scale of colours from 0.
struct HeatMaps {
  struct Map {
    std::string title;
    std::vector<double> values;  ///< Row-major.
  };
  std::string title;
  std::string row_name, column_name;  ///< What the rows are, and the columns.
  std::vector<std::string> rows, columns;
  std::vector<Map> maps;
};

/// Draws them to an SVG file, the first row on top. Throws as draw_svg does.
void draw(const HeatMaps& maps, const std::string& path);

}  // namespace xtape::cli
