/// Pictures: gnuplot, heat maps, and statistics of modules.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "train/run/metrics.hpp"

namespace xtape::cli {

// Pictures that the external program gnuplot draws.

/// Returns a string literal for a gnuplot script. gnuplot shows it literally as `text`, with two exceptions. Control
/// characters become their pictures (␊), and bytes that are not UTF-8 become U+FFFD, because an SVG file must contain
/// neither.
std::string gnuplot_string(const std::string& text);

/// Like gnuplot_string, for the label of a tic. gnuplot interprets such a label as a format, so '%' is doubled.
std::string gnuplot_tic(const std::string& text);

/// Formats a number for a gnuplot script.
std::string gnuplot_number(double number);

/// Returns the approximate width of text in units of its font size. The width is an estimate, because the viewer of the
/// SVG file chooses the font.
double text_width(const std::string& text);

/// Adds --out FILE.svg. The help says that its default is `preset`. Without the option, `path` stays empty.
void add_picture(CLI::App& command, std::string& path, const std::string& preset);

/// Returns `path`. If it is empty, returns the default and prints it, so that the user knows which file is written.
std::string picture_path(const std::string& path, const std::string& preset);

/// Runs gnuplot on `script`. Writes the picture of `width` × `height` pixels to `path` atomically. Throws WorkFailed if
/// gnuplot is not installed or fails, and FileError if the file cannot be written.
void draw_svg(const std::string& script, int width, int height, const std::string& path);

// Heat maps of matrices.

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

// Pictures of runs.

/// Draws a metric of runs over their updates to an SVG file, as `xtape plot` does. Throws WrongInput if a run does not
/// have the metric. Errors of draw_svg propagate.
void draw_runs(const std::vector<std::string>& runs, const std::string& metric, const std::string& path);

// The picture of the statistics of modules over the updates of a run.

/// Draws the statistics in the lines of metrics.jsonl to an SVG file, as one map of modules and updates for each kind
/// of number. Throws WrongInput if there are no statistics. Errors of draw_svg propagate.
void draw_statistics(const std::vector<train::Measured>& lines, const std::string& run, const std::string& path);

}  // namespace xtape::cli
