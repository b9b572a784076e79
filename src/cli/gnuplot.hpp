/// Pictures, drawn by the program gnuplot.
#pragma once

#include <string>

#include "commands.hpp"

namespace xtape::cli {

/// `text` as a string in a gnuplot script, to be shown as it stands. Control characters are shown by their pictures
/// (␊), what is not UTF-8 as U+FFFD: neither may stand in an SVG file.
std::string gnuplot_string(const std::string& text);

/// The same as the label of a tic, which gnuplot reads as a format.
std::string gnuplot_tic(const std::string& text);

/// A number as gnuplot reads it.
std::string gnuplot_number(double number);

/// How wide text of one pixel's size is about, in pixels: nobody knows the font before the picture is shown.
double text_width(const std::string& text);

/// Adds --out FILE.svg.
void add_picture(CLI::App& command, std::string& path);

/// Runs gnuplot on `script` and puts the picture, of so many pixels, to `path`, whole or not at all. Throws WorkFailed
/// where gnuplot is not installed or fails, FileError where the file cannot be written.
void draw_svg(const std::string& script, int width, int height, const std::string& path);

}  // namespace xtape::cli
