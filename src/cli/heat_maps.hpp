/// Heat maps of matrices.
#pragma once

#include <string>
#include <vector>

namespace xtape::cli {

/// Matrices with the same row and column labels. They are drawn next to each other with a common colour scale that
/// starts at 0.
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

/// Draws the maps to an SVG file with the first row on top. Errors of draw_svg propagate.
void draw(const HeatMaps& maps, const std::string& path);

}  // namespace xtape::cli
