/// Heat maps of matrices.
#pragma once

#include <string>
#include <vector>

namespace xtape::cli {

/// Matrices with the same row and column labels, drawn next to each other with one colour scale that starts at 0.
struct HeatMaps {
  struct Map {
    std::string title;
    std::vector<double> values;  ///< Row-major.
  };
  std::string title;
  std::string row_name, column_name;  ///< The titles of the row axis and the column axis.
  std::vector<std::string> rows, columns;
  std::vector<Map> maps;
};

/// Draws the maps to an SVG file, the first row on top. Throws the errors of draw_svg.
void draw(const HeatMaps& maps, const std::string& path);

}  // namespace xtape::cli
