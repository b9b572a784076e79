#include "base/arrays/finite.hpp"

#include <algorithm>
#include <cmath>

#include "base/arrays/visit.hpp"

namespace xtape {

bool all_finite(const ArrayView& values) {
  const std::int64_t count = count_of(values.shape());
  bool finite = true;
  visit_floats(values, [&](const auto* elements) {
    finite =
        std::all_of(elements, elements + count, [](auto each) { return std::isfinite(static_cast<double>(each)); });
  });
  return finite;
}

}  // namespace xtape
