// Pictures of arrays: the last two axes as images, one for each kept place of the axes before them.
#include <algorithm>
#include <cmath>

#include "base/arrays/visit.hpp"
#include "base/bytes/encodings.hpp"
#include "report/gathered.hpp"

namespace xtape::report_data {

namespace {
/// The places of an axis that a picture keeps: evenly spaced, the first one included.
struct Thinned {
  std::int64_t size = 1, kept = 1;
  std::int64_t place(std::int64_t i) const { return i * size / kept; }
};

/// Chooses what is kept of the axes before the matrix, so that all images together have at most `most` pixels, but at
/// least one image is kept: the longest axis is thinned first.
std::vector<Thinned> thinned(const Shape& shape, std::int64_t image, std::int64_t most) {
  std::vector<Thinned> axes;
  std::int64_t images = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
    axes.push_back({shape[i], shape[i]});
    images *= shape[i];
  }
  while (images > std::max<std::int64_t>(1, most / image)) {
    const auto longest = std::ranges::max_element(axes, {}, &Thinned::kept);
    images /= longest->kept;
    longest->kept = (longest->kept + 1) / 2;
    images *= longest->kept;
  }
  return axes;
}
}  // namespace

double fraction_of(double number, double low, double high) {
  const double width = high - low;
  if (!(width > 0)) return 0.5;
  return std::isfinite(width) ? (number - low) / width : (number / 2 - low / 2) / (high / 2 - low / 2);
}

char byte_of(double number, double low, double high) {
  if (!std::isfinite(number)) return static_cast<char>(255);
  return static_cast<char>(std::lround(254 * std::clamp(fraction_of(number, low, high), 0.0, 1.0)));
}

Json image_of(const ArrayView& array, const Range& range, std::int64_t most) {
  constexpr std::int64_t most_rows = 32, most_columns = 64;
  if (range.count == 0) return nullptr;
  const Shape& shape = array.shape();
  const std::int64_t high = shape.size() < 2 ? 1 : shape[shape.size() - 2], wide = shape.empty() ? 1 : shape.back();
  const Thinned rows{high, std::min(most_rows, high)}, columns{wide, std::min(most_columns, wide)};
  const std::vector<Thinned> axes = thinned(shape, rows.kept * columns.kept, most);
  std::int64_t images = 1;
  Json sizes = Json::array();
  for (const Thinned& axis : axes) {
    images *= axis.kept;
    sizes.push_back({axis.size, axis.kept});
  }
  std::string bytes;
  visit_elements(array, [&](const auto* elements) {
    for (std::int64_t image = 0; image < images; ++image) {
      std::int64_t begin = 0, rest = image, stride = high * wide;
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        begin += axis->place(rest % axis->kept) * stride;
        rest /= axis->kept;
        stride *= axis->size;
      }
      for (std::int64_t row = 0; row < rows.kept; ++row)
        for (std::int64_t column = 0; column < columns.kept; ++column) {
          const auto value = static_cast<double>(elements[begin + rows.place(row) * wide + columns.place(column)]);
          bytes += byte_of(value, range.min, range.max);
        }
    }
  });
  return {{"rows", rows.kept},
          {"columns", columns.kept},
          {"of", {high, wide}},
          {"axes", sizes},
          {"pixels", to_base64(bytes)}};
}

}  // namespace xtape::report_data
