/// The elements of an SVG file, the width of texts, and the places and labels of tics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "svg/svg.hpp"

namespace xtape::svg {

inline constexpr const char *ink = "#222", *soft = "#555", *grid = "#e6e6e6", *frame = "#888";

inline constexpr double edge = 14, title_size = 14, name_size = 12, tic_size = 11;  // pixels

/// Returns the colour of a number. The colours are those of Okabe and Ito ("Color universal design", 2008), the most
/// different first.
const char* colour(std::size_t number);
/// Returns the colour of a fraction of a heat map's scale, from near white to dark blue in steps of equal lightness.
std::string shade(double fraction);
inline constexpr const char* not_finite = "#d55e00";

/// Returns the width of a text in pixels, by the widths of Helvetica's characters. The viewer may use another font of
/// nearly its widths.
double width_of(std::string_view text, double size);
/// Returns at most the first `most` characters, and an ellipsis if there are more.
std::string shortened(std::string_view text, std::size_t most);
/// Formats a length in pixels with at most two digits after the point. A length beyond 1e9 becomes 1e9, and NaN becomes
/// 0.
std::string pixels(double length);

enum class Anchor { start, middle, end };
struct Font {
  double size = 12;
  const char* colour = ink;
  Anchor anchor = Anchor::start;
  bool bold = false;
  double turn = 0;  ///< In degrees, clockwise.
};

/// Collects the elements of a picture. Coordinates are pixels from the upper left corner.
class Canvas {
 public:
  /// `about` is shown where the mouse is on the rectangle.
  void rectangle(double x, double y, double width, double height, const std::string& fill,
                 const std::string& about = {});
  /// Draws the following rectangles up to `end_crisp` without blurred edges, so that no gap shows between neighbours.
  void begin_crisp() { elements_ += "<g shape-rendering='crispEdges'>\n"; }
  void end_crisp() { elements_ += "</g>\n"; }
  void line(Point from, Point to, const char* stroke, double width = 1, const char* dashes = "");
  /// Draws a path, given as in the attribute `d`. `style` has further attributes.
  void path(const std::string& path, const char* stroke, double width, const std::string& style = {});
  void circle(Point centre, double radius, const char* fill, const char* stroke = "none");
  /// Writes a text whose line has its middle at the height of `at`.
  void text(Point at, std::string_view words, const Font& font = {});
  /// Returns the file. `title` names the picture for readers who do not see it.
  std::string picture(double width, double height, const std::string& title) const;

 private:
  std::string elements_;
};

struct Tic {
  double at;
  std::string label;
};
/// A range of numbers on a line of pixels.
class Scale {
 public:
  /// The range of the axis, or of the values where the axis has no ends. Values that cannot be drawn are left out.
  Scale(const Axis& axis, const std::vector<double>& values);
  double low() const { return low_; }
  double high() const { return high_; }
  /// Returns the place of a number as a fraction of the range.
  double fraction(double number) const;
  bool shows(double number) const;  ///< Whether the number is finite, and above 0 on a logarithmic scale.
  /// Returns about `most` tics at round numbers, in ascending order.
  std::vector<Tic> tics(std::size_t most) const;

 private:
  std::vector<Tic> linear_tics(std::size_t most) const;
  std::vector<Tic> decades(std::size_t most) const;
  bool log_;
  double low_, high_;
};
/// Formats a number with the digits that a step between neighbours needs: "0.25", "10,000", "1.5×10⁻⁶".
std::string label_of(double number, double step);

}  // namespace xtape::svg
