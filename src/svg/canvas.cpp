#include "svg/canvas.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/messages/wording.hpp"

namespace xtape::svg {

namespace {

constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#7f3c8d", "#555555"};
constexpr unsigned char palette[][3] = {{247, 251, 255}, {214, 230, 244}, {171, 208, 230}, {106, 174, 214},
                                        {55, 135, 192},  {16, 91, 164},   {8, 48, 107}};

/// The widths of the characters from space to tilde, in hundredths of the size of the font.
constexpr unsigned char widths[] = {28, 28, 36, 56, 56, 89, 67, 19, 33, 33, 39, 58, 28, 33,  28, 28, 56, 56, 56,
                                    56, 56, 56, 56, 56, 56, 56, 28, 28, 58, 58, 58, 56, 102, 67, 67, 72, 72, 67,
                                    61, 78, 72, 28, 50, 67, 56, 83, 72, 78, 67, 78, 72, 67,  61, 72, 67, 94, 67,
                                    67, 61, 28, 28, 28, 47, 56, 33, 56, 56, 50, 56, 56, 28,  56, 56, 22, 22, 50,
                                    22, 83, 56, 56, 56, 56, 33, 50, 28, 56, 50, 72, 50, 50,  50, 33, 26, 33, 58};

/// Whether XML may not contain the character, which has three bytes: U+FFFE and U+FFFF.
bool is_refused(std::string_view character) {
  return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

/// Returns the character that is shown for the one at byte `at`, and advances `at` past that.
std::string shown(std::string_view text, std::size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::size_t length = shown_length(text, at);
  const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
  at += character.size();
  if (length > 0 && !is_refused(character)) return std::string(character);
  if (byte < 0x20) return {'\xE2', '\x90', static_cast<char>(0x80 + byte)};  // U+2400 and following
  return byte == 0x7F ? "␡" : "\uFFFD";
}

/// Returns the text as the content of an element.
std::string escaped_text(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const std::string character = shown(text, at);
    safe += character == "&" ? "&amp;" : character == "<" ? "&lt;" : character == ">" ? "&gt;" : character;
  }
  return safe;
}

}  // namespace

const char* colour(std::size_t number) {
  return colours[number % std::size(colours)];
}

std::string shade(double fraction) {
  constexpr double levels = 60;  // fewer than can be told apart, so that equal neighbours become one rectangle
  constexpr std::size_t parts = std::size(palette) - 1;
  const double place = std::round(std::clamp(fraction, 0.0, 1.0) * levels) / levels * parts;
  const std::size_t part = std::min(static_cast<std::size_t>(place), parts - 1);
  std::string colour = "#";
  for (int i = 0; i < 3; ++i) {
    const double from = palette[part][i], to = palette[part + 1][i];
    const auto value = static_cast<int>(std::lround(from + (to - from) * (place - static_cast<double>(part))));
    for (const int digit : {value / 16, value % 16}) colour += "0123456789abcdef"[digit];
  }
  return colour;
}

double width_of(std::string_view text, double size) {
  double width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string character = shown(text, at);
    const auto first = static_cast<unsigned char>(character[0]);
    // Characters of three bytes from U+2E80 are those of East Asian scripts, which are as wide as high.
    width += first < 0x7F ? widths[first - ' '] : character >= "\xE2\xBA\x80" ? 100 : 60;
  }
  return width / 100 * size * 1.04;
}

std::string shortened(std::string_view text, std::size_t most) {
  std::string short_text;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count == most) return short_text + "…";
    short_text += shown(text, at);
  }
  return short_text;
}

std::string pixels(double length) {
  constexpr double farthest = 1e9;  // beyond all pictures
  const double bounded = std::isnan(length) ? 0 : std::clamp(length, -farthest, farthest);
  char text[16];
  std::string digits(text, std::to_chars(text, text + sizeof text, bounded, std::chars_format::fixed, 2).ptr);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

void Canvas::rectangle(double x, double y, double width, double height, const std::string& fill,
                       const std::string& about) {
  elements_ += "<rect x='" + pixels(x) + "' y='" + pixels(y) + "' width='" + pixels(width) + "' height='" +
               pixels(height) + "' fill='" + fill + "'" +
               (about.empty() ? "/>\n" : "><title>" + escaped_text(about) + "</title></rect>\n");
}

void Canvas::line(Point from, Point to, const char* stroke, double width, const char* dashes) {
  path("M" + pixels(from.x) + " " + pixels(from.y) + "L" + pixels(to.x) + " " + pixels(to.y), stroke, width,
       *dashes == '\0' ? "" : std::string(" stroke-dasharray='") + dashes + "'");
}

void Canvas::path(const std::string& path, const char* stroke, double width, const std::string& style) {
  elements_ += "<path d='" + path + "' fill='none' stroke='" + stroke + "' stroke-width='" + pixels(width) + "'" +
               style + "/>\n";
}

void Canvas::circle(Point centre, double radius, const char* fill, const char* stroke) {
  elements_ += "<circle cx='" + pixels(centre.x) + "' cy='" + pixels(centre.y) + "' r='" + pixels(radius) + "' fill='" +
               fill + "' stroke='" + stroke + "' stroke-width='2'/>\n";
}

void Canvas::text(Point at, std::string_view words, const Font& font) {
  if (words.empty()) return;
  const std::string x = pixels(at.x), y = pixels(at.y);
  elements_ +=
      "<text x='" + x + "' y='" + y + "' dy='.35em' font-size='" + pixels(font.size) + "' fill='" + font.colour + "'";
  if (font.anchor != Anchor::start)
    elements_ += font.anchor == Anchor::end ? " text-anchor='end'" : " text-anchor='middle'";
  if (font.bold) elements_ += " font-weight='bold'";
  if (font.turn != 0) elements_ += " transform='rotate(" + pixels(font.turn) + " " + x + " " + y + ")'";
  elements_ += ">" + escaped_text(words) + "</text>\n";
}

std::string Canvas::picture(double width, double height, const std::string& title) const {
  const std::string w = pixels(std::ceil(width)), h = pixels(std::ceil(height));
  return "<svg xmlns='http://www.w3.org/2000/svg' width='" + w + "' height='" + h + "' viewBox='0 0 " + w + " " + h +
         "' role='img' font-family='Helvetica, Arial, \"Liberation Sans\", sans-serif' xml:space='preserve'>\n<title>" +
         escaped_text(title) + "</title>\n<rect width='100%' height='100%' fill='#fff'/>\n" + elements_ + "</svg>\n";
}

}  // namespace xtape::svg
