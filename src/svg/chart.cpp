#include <algorithm>
#include <cmath>

#include "svg/canvas.hpp"

namespace xtape::svg {

namespace {

/// The axes, and where they are in the picture.
class Plot {
 public:
  explicit Plot(const Chart& chart);
  std::string picture();

 private:
  double x(double number) const { return left_ + horizontal_.fraction(number) * chart_.width; }
  double y(double number) const { return top_ + (1 - vertical_.fraction(number)) * chart_.height; }
  bool shows(Point point) const { return horizontal_.shows(point.x) && vertical_.shows(point.y); }
  std::string path(const Curve& curve) const;
  std::string marks(const Curve& curve) const;
  void draw(const Curve& curve);
  void draw_sample(const Curve& curve, double at, double middle);
  void draw_axes();
  void draw_boxes();
  void draw_texts();
  /// Writes the legend, and returns its height. Without a canvas, only the height.
  double legend(Canvas* canvas);

  const Chart& chart_;
  Scale horizontal_, vertical_;
  std::vector<Tic> across_, up_;
  double left_ = 0, top_ = 0, right_ = edge;
  Canvas canvas_;
};

/// Returns the coordinates of all that has a place on an axis.
std::vector<double> places(const Chart& chart, double Point::*coordinate) {
  const bool across = coordinate == &Point::x;
  std::vector<double> all;
  for (const Curve& curve : chart.curves)
    for (const Point& point : curve.points)
      if (std::isfinite(point.x) && std::isfinite(point.y)) all.push_back(point.*coordinate);
  for (const Box& box : chart.boxes) {
    all.push_back(across ? box.left : box.low);
    all.push_back(across ? box.right : box.high);
  }
  for (const Label& label : chart.labels) all.push_back(label.at.*coordinate);
  return all;
}

Plot::Plot(const Chart& chart)
    : chart_(chart), horizontal_(chart.x, places(chart, &Point::x)), vertical_(chart.y, places(chart, &Point::y)) {
  across_ = horizontal_.tics(static_cast<std::size_t>(std::max(2.0, chart.width / 80)));
  up_ = vertical_.tics(static_cast<std::size_t>(std::max(2.0, chart.height / 50)));
  double widest = 0;
  for (const Tic& tic : up_) widest = std::max(widest, width_of(tic.label, tic_size));
  left_ = edge + (chart.y.title.empty() ? 0 : name_size + 8) + widest + 8;
  right_ = std::max(edge, across_.empty() ? 0 : width_of(across_.back().label, tic_size) / 2);
  top_ = edge + (chart.title.empty() ? 0 : title_size + 10);
  top_ += legend(nullptr) + (chart.rules.empty() ? 0 : name_size + 6);
}

double Plot::legend(Canvas* canvas) {
  constexpr double sample = 24, line = 18, apart = 18;
  double at = left_, row = 0;
  bool any = false;
  const auto place = [&](const std::string& name) {
    const double width = sample + 6 + width_of(name, name_size);
    if (any && at + width > left_ + chart_.width) at = left_, row += line;
    any = true;
    const Point place{at, edge + (chart_.title.empty() ? 0 : title_size + 10) + row + line / 2 - 4};
    if (canvas != nullptr) canvas->text({at + sample + 6, place.y}, name);
    at += width + apart;
    return place;
  };
  for (const Curve& curve : chart_.curves)
    if (!curve.name.empty()) {
      const Point from = place(curve.name);
      if (canvas != nullptr) draw_sample(curve, from.x, from.y);
    }
  for (const Name& name : chart_.box_names) {
    if (std::ranges::none_of(chart_.boxes, [&](const Box& box) { return box.colour == name.colour; })) continue;
    const Point from = place(name.text);
    if (canvas != nullptr) canvas->rectangle(from.x + 6, from.y - 6, sample - 6, 12, colour(name.colour));
  }
  return any ? row + line + 4 : 0;
}

std::string Plot::path(const Curve& curve) const {
  std::string path;
  bool begun = false;
  for (const Point& point : curve.points) {
    if (!shows(point)) {
      begun = false;
      continue;
    }
    path += (begun ? "L" : "M") + pixels(x(point.x)) + " " + pixels(y(point.y));
    begun = true;
  }
  return path;
}

/// Returns a path of single points, or of stems.
std::string Plot::marks(const Curve& curve) const {
  const std::string bottom = pixels(top_ + chart_.height);
  std::string path;
  for (const Point& point : curve.points)
    if (shows(point) && point.y >= vertical_.low())
      path += "M" + pixels(x(point.x)) + " " + pixels(y(point.y)) + (curve.style == Style::stems ? "V" + bottom : "h0");
  return path;
}

constexpr const char* rounded = " stroke-linejoin='round' stroke-linecap='round'";

void Plot::draw(const Curve& curve) {
  const char* stroke = colour(curve.colour);
  const std::string faint = std::string(rounded) + " opacity='.3'";
  switch (curve.style) {
    case Style::faint:
      return canvas_.path(path(curve), stroke, 1, faint);
    case Style::solid:
      return canvas_.path(path(curve), stroke, 2, rounded);
    case Style::stems:
      return canvas_.path(marks(curve), stroke, 1, " opacity='.45'");
    case Style::dots:
      return canvas_.path(marks(curve), stroke, 3, rounded);
    case Style::dashed:
      canvas_.path(path(curve), stroke, 1.5, std::string(rounded) + " stroke-dasharray='5 4'");
      return canvas_.path(marks(curve), stroke, 5, rounded);
    case Style::ring:
      for (const Point& point : curve.points)
        if (shows(point)) canvas_.circle({x(point.x), y(point.y)}, 5.5, "#fff", stroke);
  }
}

void Plot::draw_sample(const Curve& curve, double at, double middle) {
  const char* stroke = colour(curve.colour);
  const bool is_line = curve.style != Style::ring && curve.style != Style::dots;
  const bool is_light = curve.style == Style::faint || curve.style == Style::stems;
  const std::string place = "M" + pixels(at) + " " + pixels(middle);
  if (curve.style == Style::ring) return canvas_.circle({at + 12, middle}, 5.5, "#fff", stroke);
  if (is_line)
    canvas_.path(place + "h24", stroke, curve.style == Style::dashed ? 1.5 : 2,
                 is_light                       ? " opacity='.45'"
                 : curve.style == Style::dashed ? " stroke-dasharray='5 4'"
                                                : "");
  if (curve.style == Style::dashed || curve.style == Style::dots)
    canvas_.path("M" + pixels(at + 12) + " " + pixels(middle) + "h0", stroke, 5, rounded);
}

void Plot::draw_axes() {
  const double bottom = top_ + chart_.height, right = left_ + chart_.width;
  for (const Point& band : chart_.bands)
    canvas_.rectangle(x(band.x), top_, x(band.y) - x(band.x), chart_.height, "#dcdcdc");
  for (const Tic& tic : up_) {
    canvas_.line({left_, y(tic.at)}, {right, y(tic.at)}, grid);
    canvas_.text({left_ - 7, y(tic.at)}, tic.label, {tic_size, soft, Anchor::end});
  }
  for (const Tic& tic : across_) {
    canvas_.line({x(tic.at), bottom}, {x(tic.at), bottom + 4}, frame);
    canvas_.text({x(tic.at), bottom + 14}, tic.label, {tic_size, soft, Anchor::middle});
  }
  canvas_.line({left_, bottom}, {right, bottom}, frame);
  canvas_.text({left_ + chart_.width / 2, bottom + 32}, chart_.x.title, {name_size, ink, Anchor::middle});
  canvas_.text({edge + name_size / 2, top_ + chart_.height / 2}, chart_.y.title,
               {name_size, ink, Anchor::middle, false, -90});
  canvas_.text({left_, edge + title_size / 2}, chart_.title, {title_size, ink, Anchor::start, true});
}

void Plot::draw_boxes() {
  constexpr double narrow = 3;  // boxes this small have no gap to their neighbours
  for (const Box& box : chart_.boxes) {
    const double from = x(box.left), to = x(box.right), above = y(box.high), below = y(box.low);
    const double gap = std::min(to - from, below - above) > narrow ? 0.5 : 0;
    canvas_.rectangle(from + gap, above + gap, to - from - 2 * gap, below - above - 2 * gap, colour(box.colour),
                      box.about);
  }
  for (const Box& box : chart_.boxes)
    canvas_.text({(x(box.left) + x(box.right)) / 2, (y(box.low) + y(box.high)) / 2}, box.label,
                 {tic_size, "#fff", Anchor::middle, true});
}

void Plot::draw_texts() {
  for (const Label& label : chart_.labels)
    canvas_.text({x(label.at.x), y(label.at.y) - 7}, label.text, {10, ink, Anchor::start, false, -90});
  for (const Label& rule : chart_.rules) {
    canvas_.line({x(rule.at.x), top_}, {x(rule.at.x), top_ + chart_.height}, ink, 1.5, "5 4");
    canvas_.text({x(rule.at.x), top_ - 9}, rule.text, {name_size, ink, Anchor::middle});
  }
}

std::string Plot::picture() {
  draw_axes();
  draw_boxes();
  // The legend is above; lines that are in the way of others come first.
  for (const bool behind : {true, false})
    for (const Curve& curve : chart_.curves)
      if ((curve.style == Style::faint || curve.style == Style::stems) == behind) draw(curve);
  draw_texts();
  legend(&canvas_);
  constexpr double line = 16;
  double below = top_ + chart_.height + (chart_.x.title.empty() ? 24 : 44);
  double widest = left_ + chart_.width + right_;
  const double column = (widest - 2 * edge) / 2;
  for (std::size_t i = 0; i < chart_.notes.size(); ++i) {
    const double from = edge + (i % 2 == 0 ? 0 : column);
    canvas_.text({from, below + line / 2 + std::floor(static_cast<double>(i) / 2) * line}, chart_.notes[i],
                 {tic_size, soft});
    widest = std::max(widest, from + width_of(chart_.notes[i], tic_size) + edge);
  }
  below += std::ceil(static_cast<double>(chart_.notes.size()) / 2) * line;
  const std::string name = chart_.title.empty() ? chart_.y.title + " by " + chart_.x.title : chart_.title;
  return canvas_.picture(widest, below + edge / 2, name);
}

}  // namespace

std::string drawn(const Chart& chart) {
  return Plot(chart).picture();
}

}  // namespace xtape::svg
