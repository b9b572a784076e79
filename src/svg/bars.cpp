#include <algorithm>

#include "svg/canvas.hpp"

namespace xtape::svg {

namespace {

constexpr double bar = 11, gap = 14, length = 440;  // pixels: a bar with its space, between groups, and the axis

double height_of(const Bars::Group& group) {
  constexpr double two_lines = 24;  // of its name and what is said about it
  const auto has_value = [](const std::optional<double>& value) { return value.has_value(); };
  return std::max(static_cast<double>(std::ranges::count_if(group.values, has_value)) * bar, two_lines);
}

/// Zero, and all that has a place on the axis.
std::vector<double> values_of(const Bars& bars) {
  std::vector<double> values = {0};
  if (bars.mark) values.push_back(bars.mark->at.x);
  for (const Bars::Group& group : bars.groups)
    for (const std::optional<double>& value : group.values)
      if (value) values.push_back(*value);
  return values;
}

class BarPicture {
 public:
  explicit BarPicture(const Bars& bars) : bars_(bars), scale_({.low = 0}, values_of(bars)) {
    double names = 0;
    for (const Bars::Group& group : bars.groups)
      names = std::max({names, width_of(group.name, name_size) * 1.08, width_of(group.about, small)});
    left_ = edge + names + 10;
  }
  std::string picture() {
    canvas_.text({edge, edge + title_size / 2}, bars_.title, {title_size, ink, Anchor::start, true});
    const double top = draw_legend(edge + (bars_.title.empty() ? 0 : title_size + 12)) + (bars_.mark ? 16 : 0);
    double bottom = top - gap / 2;
    for (const Bars::Group& group : bars_.groups) bottom += height_of(group) + gap;
    draw_axis(top - gap / 2, bottom);
    double at = top;
    for (const Bars::Group& group : bars_.groups) {
      draw(group, at);
      at += height_of(group) + gap;
    }
    canvas_.text({edge, bottom + 32}, bars_.note, {tic_size, soft});
    const double widest = std::max(left_ + length + 10, edge + width_of(bars_.note, tic_size)) + edge;
    return canvas_.picture(widest, bottom + (bars_.note.empty() ? 24 : 46), bars_.title);
  }

 private:
  static constexpr double small = 10;
  double x(double value) const { return left_ + scale_.fraction(value) * length; }

  /// Returns where the legend ends.
  double draw_legend(double top) {
    constexpr double sample = 18;
    double width = 1;
    for (const std::string& series : bars_.series) width = std::max(width, sample + 24 + width_of(series, name_size));
    const auto columns = std::max<std::size_t>(1, static_cast<std::size_t>((left_ + length - edge) / width));
    for (std::size_t i = 0; i < bars_.series.size(); ++i) {
      const double at = edge + static_cast<double>(i % columns) * width;
      if (i > 0 && i % columns == 0) top += 18;
      canvas_.rectangle(at, top, 12, 10, colour(i));
      canvas_.text({at + sample, top + 5}, bars_.series[i]);
    }
    return top + 26;
  }

  void draw_axis(double top, double bottom) {
    for (const Tic& tic : scale_.tics(6)) {
      canvas_.line({x(tic.at), top}, {x(tic.at), bottom}, tic.at == 0 ? frame : grid);
      canvas_.text({x(tic.at), bottom + 12}, tic.label, {tic_size, soft, Anchor::middle});
    }
    if (!bars_.mark) return;
    canvas_.line({x(bars_.mark->at.x), top}, {x(bars_.mark->at.x), bottom}, ink, 1.5);
    canvas_.text({x(bars_.mark->at.x), top - 9}, bars_.mark->text, {name_size, ink, Anchor::middle});
  }

  void draw(const Bars::Group& group, double top) {
    const double middle = top + height_of(group) / 2;
    canvas_.text({left_ - 10, middle - (group.about.empty() ? 0 : 7)}, group.name, {name_size, ink, Anchor::end, true});
    canvas_.text({left_ - 10, middle + 7}, group.about, {small, soft, Anchor::end});
    const auto count = std::ranges::count_if(group.values, [](const auto& value) { return value.has_value(); });
    double at = middle - static_cast<double>(count) * bar / 2;
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      if (!group.values[i]) continue;
      canvas_.rectangle(left_, at, x(*group.values[i]) - left_, bar - 1, colour(i));
      canvas_.text({x(*group.values[i]) + 4, at + bar / 2 - 0.5}, label_of(*group.values[i], scale_.high() / 100),
                   {small, soft});
      at += bar;
    }
  }

  const Bars& bars_;
  Scale scale_;
  double left_ = 0;
  Canvas canvas_;
};

}  // namespace

std::string drawn(const Bars& bars) {
  return BarPicture(bars).picture();
}

}  // namespace xtape::svg
