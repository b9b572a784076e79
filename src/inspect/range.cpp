#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/arrays/visit.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

namespace {
void add_element(Range& range, double value) {
  if (std::isnan(value)) {
    ++range.nans;
  } else if (std::isinf(value)) {
    ++(value > 0 ? range.positive_infinities : range.negative_infinities);
  } else {
    if (range.min > range.max) range.min = range.max = value;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
    if (value == 0) ++range.zeros;
  }
}
}  // namespace

double Range::magnitude() const {
  return std::max(std::abs(min), std::abs(max));
}

Range range_of(const ArrayView& values) {
  if (!values.layout().contiguous()) return range_of(Array(values));
  Range range;
  range.count = count_of(values.shape());
  range.min = 1;  // min > max: no finite element yet
  visit_elements(values, [&](const auto* elements) {
    for (std::int64_t i = 0; i < range.count; ++i) add_element(range, static_cast<double>(elements[i]));
  });
  if (range.min > range.max) range.min = range.max = 0;
  return range;
}

std::string to_string(const Range& range) {
  std::ostringstream text;
  text.precision(4);
  if (range.count == 0) return "no elements";
  if (range.finite() == 0)
    text << "none finite";
  else if (range.min == range.max)
    text << (range.finite() == range.count && range.count > 1 ? "all " : "") << range.min;
  else
    text << range.min << " … " << range.max;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) text << ", " << count << " of " << range.count << ' ' << what;
  };
  if (range.min != range.max) add(range.zeros, "zero");
  add(range.nans, "NaN");
  add(range.positive_infinities, "inf");
  add(range.negative_infinities, "-inf");
  return text.str();
}

}  // namespace xtape
