#include <algorithm>
#include <cmath>

#include "base/arrays/lengths.hpp"
#include "kernels/table/kernels.hpp"
#include "svg/canvas.hpp"

namespace xtape::svg {

namespace {

constexpr std::size_t longest_label = 30;  // characters

/// Returns the number of columns of maps for an aspect ratio near 3:2 with few empty positions in the last row.
std::size_t columns_for(std::size_t count, double width, double height) {
  std::size_t best = 1;
  double least = INFINITY;
  for (std::size_t columns = 1; columns <= count; ++columns) {
    const std::size_t rows = ceiling(count, columns);
    const double shape = width * static_cast<double>(columns) / (height * static_cast<double>(rows));
    const double left_over = static_cast<double>(columns * rows - count) / static_cast<double>(columns);
    const double badness = std::abs(kernels().numbers.log(shape / 1.5)) + left_over;
    if (badness < least) {
      least = badness;
      best = columns;
    }
  }
  return best;
}

double widest(const std::vector<std::string>& labels, double size) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, width_of(shortened(label, longest_label), size));
  return width;
}

class Maps {
 public:
  explicit Maps(const HeatMaps& maps);
  std::string picture();

 private:
  double row_height() const { return down_ / static_cast<double>(maps_.rows.size()); }
  double column_width() const { return across_ / static_cast<double>(columns_); }
  Scale scale_of(const HeatMaps::Map& map) const;
  void draw(const HeatMaps::Map& map, double left, double top);
  void draw_bar(Point at, double length, bool upright);
  void draw_columns(double left, double bottom);

  const HeatMaps& maps_;
  std::size_t columns_;                          // of a matrix
  double font_, across_, down_;                  // the labels' size, and the size of a map
  double left_, top_, step_across_, step_down_;  // the first map, and the way to the next
  double below_;                                 // height of the labels of columns
  bool turned_;                                  // whether the labels of columns are wider than these
  std::size_t maps_across_;
  Scale shared_;
  Canvas canvas_;
};

/// The scale of all maps that have none of their own: from 0 to the largest value, rounded up to a tenth.
Scale shared_scale(const HeatMaps& maps) {
  double most = 0.1;
  for (const HeatMaps::Map& map : maps.maps)
    for (const double value : map.values)
      if (std::isfinite(value)) most = std::max(most, value);
  return Scale({.low = 0, .high = std::ceil(most * 10 - 1e-4) / 10}, {});
}

bool has_own_scales(const HeatMaps& maps) {
  return std::ranges::any_of(maps.maps, [](const HeatMaps::Map& map) { return map.scale.has_value(); });
}

Maps::Maps(const HeatMaps& maps)
    : maps_(maps), columns_(maps.columns.size() + maps.column_numbers.size()), shared_(shared_scale(maps)) {
  const bool one = maps.maps.size() == 1, numbers = !maps.column_numbers.empty();
  const auto rows = static_cast<double>(maps.rows.size()), columns = static_cast<double>(columns_);
  const double most = numbers ? rows : std::max(rows, columns);
  const double cell = one ? std::clamp(440 / most, 15.0, 40.0) : std::clamp(240 / most, 13.0, 28.0);
  font_ = one ? std::min(12.0, cell * 0.8) : std::min(11.0, cell * 0.75);
  across_ = numbers ? std::clamp(columns * 6, 250.0, 320.0) : cell * columns;
  down_ = cell * rows;
  const double beside = widest(maps.rows, font_) + 8;
  const double label = widest(maps.columns, font_);
  turned_ = label > cell - 3;
  const double sideways = turned_ ? label * 0.71 + font_ : font_;  // turned by 45 degrees
  below_ = numbers ? 20 : sideways + 4;
  const double map_title = one && maps.maps[0].title.empty() ? 0 : 22;
  step_across_ = across_ + 18;
  step_down_ = down_ + map_title + 12;
  maps_across_ = columns_for(maps.maps.size(), step_across_, step_down_);
  left_ = edge + (maps.row_name.empty() ? 0 : name_size + 10) + std::max(beside, numbers ? 0 : sideways - cell / 2);
  top_ = edge + (maps.title.empty() ? 0 : title_size + 12) + map_title;
}

Scale Maps::scale_of(const HeatMaps::Map& map) const {
  return map.scale ? Scale(*map.scale, map.values) : shared_;
}

void Maps::draw_bar(Point at, double length, bool upright) {
  constexpr double thick = 12;
  constexpr int parts = 61;
  canvas_.begin_crisp();
  for (int i = 0; i < parts; ++i) {
    const double from = length * i / parts, part = length / parts + 0.8;
    const std::string fill = shade((upright ? parts - 1 - i : i) / (parts - 1.0));
    if (upright)
      canvas_.rectangle(at.x, at.y + from, thick, part, fill);
    else
      canvas_.rectangle(at.x + from, at.y, part, thick - 3, fill);
  }
  canvas_.end_crisp();
}

void Maps::draw(const HeatMaps::Map& map, double left, double top) {
  const Scale scale = scale_of(map);
  const double wide = column_width(), high = row_height();
  canvas_.rectangle(left, top, across_, down_, shade(0));
  const auto fill = [&](std::size_t row, std::size_t column) -> std::string {
    const double value = map.values[row * columns_ + column];
    if (std::isnan(value)) return "#e8e8e8";
    if (std::isinf(value)) return not_finite;
    return shade(scale.shows(value) ? scale.fraction(value) : 0);
  };
  canvas_.begin_crisp();
  for (std::size_t row = 0; row < maps_.rows.size(); ++row)
    for (std::size_t from = 0, to = 0; from < columns_; from = to) {
      const std::string colour = fill(row, from);
      for (to = from + 1; to < columns_ && fill(row, to) == colour;) ++to;
      if (colour == shade(0)) continue;
      const double x = left + static_cast<double>(from) * wide, end = left + static_cast<double>(to) * wide;
      canvas_.rectangle(x, top + static_cast<double>(row) * high, end - x, high, colour);  // as long as its colour
    }
  canvas_.end_crisp();
  const std::string corner = "M" + pixels(left) + " " + pixels(top);
  canvas_.path(corner + "h" + pixels(across_) + "v" + pixels(down_) + "h" + pixels(-across_) + "z", frame, 1);
  canvas_.text({left, top - 11}, map.title, {name_size, ink});
  if (!map.scale) return;
  const double range = scale.high() - scale.low();
  const auto end = [&](double number) { return label_of(number, map.scale->log ? number : range); };
  const std::string low = end(scale.low()), most = end(scale.high());
  const double right = left + across_ - width_of(most, 10) - 4;
  const double room = right - left - width_of(map.title, name_size) - width_of(low, 10) - 16;
  const double length = std::clamp(room, 16.0, 60.0);
  canvas_.text({left + across_, top - 11}, most, {10, soft, Anchor::end});
  draw_bar({right - length, top - 16}, length, false);
  canvas_.text({right - length - 4, top - 11}, low, {10, soft, Anchor::end});
}

void Maps::draw_columns(double left, double bottom) {
  const double wide = column_width();
  for (std::size_t i = 0; i < maps_.columns.size(); ++i) {
    const double middle = left + (static_cast<double>(i) + 0.5) * wide;
    const Font font{font_, ink, turned_ ? Anchor::end : Anchor::middle, false, turned_ ? -45.0 : 0.0};
    canvas_.text({middle + (turned_ ? 2 : 0), bottom + font_ * 0.8}, shortened(maps_.columns[i], longest_label), font);
  }
  if (maps_.column_numbers.empty()) return;
  const std::vector<double>& numbers = maps_.column_numbers;
  for (const Tic& tic : Scale({.low = numbers.front(), .high = numbers.back()}, {}).tics(5)) {
    const auto next = std::ranges::lower_bound(numbers, tic.at);
    if (next == numbers.end()) continue;
    auto place = static_cast<double>(next - numbers.begin());  // between columns if no column has the number
    if (next != numbers.begin()) place -= (*next - tic.at) / (*next - *(next - 1));
    const double x = left + (place + 0.5) * wide;
    canvas_.line({x, bottom}, {x, bottom + 4}, frame);
    canvas_.text({x, bottom + 13}, tic.label, {10, soft, Anchor::middle});
  }
}

std::string Maps::picture() {
  const auto& all = maps_.maps;
  const std::size_t rows = ceiling(all.size(), maps_across_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double left = left_ + static_cast<double>(i % maps_across_) * step_across_;
    const double top = top_ + static_cast<double>(i / maps_across_) * step_down_;
    draw(all[i], left, top);
    if (i % maps_across_ == 0)
      for (std::size_t row = 0; row < maps_.rows.size(); ++row)
        canvas_.text({left - 6, top + (static_cast<double>(row) + 0.5) * row_height()},
                     shortened(maps_.rows[row], longest_label), {font_, ink, Anchor::end});
    if (i + maps_across_ >= all.size()) draw_columns(left, top + down_);
  }
  const double right = left_ + static_cast<double>(maps_across_) * step_across_ - 18;
  const double bottom = top_ + (static_cast<double>(rows) - 1) * step_down_ + down_;
  canvas_.text({(left_ + right) / 2, bottom + below_ + name_size / 2 + 4}, maps_.column_name,
               {name_size, ink, Anchor::middle});
  canvas_.text({edge + name_size / 2, (top_ + bottom) / 2}, maps_.row_name,
               {name_size, ink, Anchor::middle, false, -90});
  canvas_.text({edge, edge + title_size / 2}, maps_.title, {title_size, ink, Anchor::start, true});
  const auto has_infinity = [](const HeatMaps::Map& map) {
    return std::ranges::any_of(map.values, [](double value) { return std::isinf(value); });
  };
  const bool any = std::ranges::any_of(all, has_infinity);
  if (any) {
    canvas_.rectangle(right - 70, bottom + below_ + 5, 10, 10, not_finite);
    canvas_.text({right, bottom + below_ + 10}, "not finite", {tic_size, soft, Anchor::end});
  }
  double wide = right + edge;
  double high = bottom + below_ + (maps_.column_name.empty() && !any ? 0 : name_size + 8) + edge / 2;
  if (!has_own_scales(maps_)) {
    const double length = std::clamp(bottom - top_, 100.0, 260.0), bar = right + 22;
    draw_bar({bar, top_}, length, true);
    double label = 0;
    for (const Tic& tic : shared_.tics(5)) {
      canvas_.text({bar + 18, top_ + (1 - shared_.fraction(tic.at)) * length}, tic.label, {11, soft});
      label = std::max(label, width_of(tic.label, 11));
    }
    wide = bar + 18 + label + edge;
    high = std::max(high, top_ + length + edge);
  }
  return canvas_.picture(std::max(wide, edge * 2 + width_of(maps_.title, title_size) * 1.08), high, maps_.title);
}

}  // namespace

std::string drawn(const HeatMaps& maps) {
  return Maps(maps).picture();
}

}  // namespace xtape::svg
