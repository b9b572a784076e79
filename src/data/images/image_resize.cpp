// Resizes images to the same bytes as Pillow 13. There is one pass along the rows and one pass along the columns. Each
// pass rounds to bytes.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/system/process_memory.hpp"
#include "data/images/image_files.hpp"

namespace xtape {

namespace {
// bits of the fraction of a weight; the weighted sum of a pixel needs 8 more bits and a sign
constexpr int fraction_bits = 22;

/// sin(pi x) / (pi x), by the series of the sine at the distance of x to the nearest whole number. The C library's sine
/// has other bits on other processors.
double sinc(double x) {
  if (x == 0) return 1;
  const double whole = std::nearbyint(x), angle = std::numbers::pi * (x - whole);
  double sine = angle, term = angle;
  for (double n = 2; std::abs(term) > 1e-18; n += 2) sine += term *= -angle * angle / (n * (n + 1));
  return (std::fmod(whole, 2) == 0 ? sine : -sine) / (std::numbers::pi * x);
}

/// Returns the distance from which on the filter is 0.
double reach(ImageFilter filter) {
  return filter == ImageFilter::bilinear ? 1 : filter == ImageFilter::bicubic ? 2 : 3;
}

double weight_at(ImageFilter filter, double x) {
  x = std::fabs(x);
  if (x >= reach(filter)) return 0;
  if (filter == ImageFilter::bilinear) return 1 - x;
  if (filter == ImageFilter::lanczos) return sinc(x) * sinc(x / 3);
  constexpr double a = -0.5;  // slope of the filter at 1 (Keys, 1981)
  return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : (((x - 5) * x + 8) * x - 4) * a;
}

/// The source pixels of one result pixel, and their weights.
struct Mix {
  std::int64_t first;
  std::vector<std::int32_t> weights;
};

/// Returns the mixes for resizing `from` pixels to `to` pixels.
std::vector<Mix> mixes(std::int64_t from, std::int64_t to, ImageFilter filter) {
  const double step = static_cast<double>(from) / static_cast<double>(to), width = std::max(step, 1.0);
  const double most = reach(filter) * width, narrower = 1 / width;
  std::vector<Mix> all;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < to; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * step;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(middle - most + 0.5));
    const auto last = std::min(from, static_cast<std::int64_t>(middle + most + 0.5));
    weights.clear();
    double sum = 0;
    for (std::int64_t k = 0; k < last - first; ++k) {
      weights.push_back(weight_at(filter, (static_cast<double>(k + first) - middle + 0.5) * narrower));
      sum += weights.back();
    }
    Mix& mix = all.emplace_back(Mix{first, {}});
    for (const double weight : weights) {
      const double scaled = (sum == 0 ? weight : weight / sum) * (1 << fraction_bits);
      mix.weights.push_back(static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  return all;
}

std::uint8_t byte_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}
constexpr std::int32_t half = 1 << (fraction_bits - 1);

/// Resizes `rows` rows of pixels to another length.
std::vector<std::uint8_t> along_rows(const std::vector<std::uint8_t>& pixels, std::int64_t length,
                                     const std::vector<Mix>& all) {
  const std::int64_t rows = std::ssize(pixels) / length;
  std::vector<std::uint8_t> made;
  made.reserve(static_cast<std::size_t>(rows) * all.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (const Mix& mix : all) {
      const std::uint8_t* from = pixels.data() + row * length + mix.first;
      std::int32_t sum = half;
      for (const std::int32_t weight : mix.weights) sum += weight * *from++;
      made.push_back(byte_of(sum));
    }
  return made;
}

/// Resizes planes of `height` rows to another number of rows.
std::vector<std::uint8_t> along_columns(const std::vector<std::uint8_t>& pixels, std::int64_t height,
                                        std::int64_t width, const std::vector<Mix>& all) {
  const std::int64_t planes = std::ssize(pixels) / (height * width);
  std::vector<std::uint8_t> made;
  made.reserve(static_cast<std::size_t>(planes * width) * all.size());
  std::vector<std::int32_t> sums(static_cast<std::size_t>(width));
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (const Mix& mix : all) {
      std::ranges::fill(sums, half);
      const std::uint8_t* from = pixels.data() + (plane * height + mix.first) * width;
      for (const std::int32_t weight : mix.weights)
        for (std::int32_t& sum : sums) sum += weight * *from++;
      for (const std::int32_t sum : sums) made.push_back(byte_of(sum));
    }
  return made;
}

/// Returns the centre of each plane, with `height` rows and `width` columns. Pixels outside of the plane are 0.
std::vector<std::uint8_t> middle(const std::vector<std::uint8_t>& pixels, const ImageShape& shape, std::int64_t height,
                                 std::int64_t width) {
  // The first row and column of the centre. They are negative if the planes are smaller than the centre. They are then
  // rounded down, as in transformers. (C++ rounds towards 0.)
  const std::int64_t top = (shape.height - height) / 2 - (shape.height < height && (height - shape.height) % 2 != 0);
  const std::int64_t left = (shape.width - width) / 2 - (shape.width < width && (width - shape.width) % 2 != 0);
  const std::int64_t planes = std::ssize(pixels) / (shape.height * shape.width);
  std::vector<std::uint8_t> made;
  made.reserve(static_cast<std::size_t>(planes * height * width));
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t i = top; i < top + height; ++i)
      for (std::int64_t j = left; j < left + width; ++j) {
        const bool inside = i >= 0 && i < shape.height && j >= 0 && j < shape.width;
        made.push_back(inside ? pixels[(plane * shape.height + i) * shape.width + j] : std::uint8_t{0});
      }
  return made;
}

void check(const ImageResize& resize) {
  for (const std::int64_t side :
       {resize.height, resize.width, resize.shorter, resize.middle_height, resize.middle_width})
    if (side < 0 || side > most_side)
      throw Error("a resized image has 1 to " + std::to_string(most_side) + " pixels in each direction, not " +
                  std::to_string(side));
  if ((resize.height == 0) != (resize.width == 0) || (resize.middle_height == 0) != (resize.middle_width == 0))
    throw Error("a size of images has a height and a width, not one of them");
  if (resize.height > 0 && resize.shorter > 0)
    throw Error("images are resized to a height and a width, or to a shorter side, not both");
}

/// Returns the height and width after the resize, before the centre is cut out.
ImageShape target(const ImageShape& shape, const ImageResize& resize) {
  if (resize.height > 0) return {shape.channels, resize.height, resize.width};
  if (resize.shorter == 0) return shape;
  const auto [shorter, longer] = std::minmax(shape.height, shape.width);
  const std::int64_t other = resize.shorter * longer / shorter;
  if (other > most_side)
    throw Error("an image of " + std::to_string(shape.height) + " x " + std::to_string(shape.width) +
                " (height x width) with a shorter side of " + std::to_string(resize.shorter) + " would be " +
                std::to_string(other) + " pixels long; the most are " + std::to_string(most_side));
  return shape.width <= shape.height ? ImageShape{shape.channels, other, resize.shorter}
                                     : ImageShape{shape.channels, resize.shorter, other};
}
}  // namespace

Images resized(const Images& images, const ImageResize& resize) {
  check(resize);
  Images made = images;
  if (images.pixels.empty()) return made;
  const ImageShape& shape = images.shape;
  check_pixels(images);
  const ImageShape wanted = target(shape, resize);
  const auto planes = std::ssize(images.pixels) / (shape.height * shape.width);
  // Pillow 13 first resizes along the columns if the height shrinks by more than twice as many pixels as the width.
  const std::int64_t lower = shape.height - wanted.height;
  const bool columns_first = lower > 0 && lower > 2 * (shape.width - wanted.width);
  const ImageShape between = columns_first ? ImageShape{shape.channels, wanted.height, shape.width}
                                           : ImageShape{shape.channels, shape.height, wanted.width};
  const std::int64_t most = std::max(
      {wanted.height * wanted.width, between.height * between.width, resize.middle_height * resize.middle_width});
  std::int64_t bytes = planes;
  if (!checked_multiply(bytes, most)) throw Error("resized images of 2^63 bytes or more");
  require_memory_left(static_cast<std::size_t>(bytes), "resized images");
  for (const bool columns : {columns_first, !columns_first}) {
    if (columns && wanted.height != shape.height)
      made.pixels = along_columns(made.pixels, shape.height, columns_first ? shape.width : wanted.width,
                                  mixes(shape.height, wanted.height, resize.filter));
    if (!columns && wanted.width != shape.width)
      made.pixels = along_rows(made.pixels, shape.width, mixes(shape.width, wanted.width, resize.filter));
  }
  made.shape = wanted;
  if (resize.middle_height == 0) return made;
  made.pixels = middle(made.pixels, wanted, resize.middle_height, resize.middle_width);
  made.shape = {shape.channels, resize.middle_height, resize.middle_width};
  return made;
}

}  // namespace xtape
