#include "xtape/literal.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/arrays/visit.hpp"

namespace xtape {

void Literal::too_large(std::uint64_t value) {
  throw DtypeError("the literal " + std::to_string(value) + " does not fit int64, the widest integer dtype");
}

bool Literal::fits(Dtype dtype) const {
  constexpr double too_large = 65520;  // the smallest number that rounds to infinity in float16
  if (dtype == Dtype::float16) return !(std::abs(real()) >= too_large) || std::isinf(real());
  if (is_floating(dtype)) return true;
  if (dtype == Dtype::boolean) return real() == 0 || real() == 1;
  const int bits = static_cast<int>(8 * size_of(dtype)) - 1;
  if (is_whole_) return bits == 63 || (integer_ >= -(std::int64_t{1} << bits) && integer_ < std::int64_t{1} << bits);
  const double limit = std::ldexp(1.0, bits);
  return std::floor(real_) == real_ && real_ >= -limit && real_ < limit;
}

std::string to_string(const Literal& literal) {
  if (literal.is_whole()) return std::to_string(literal.integer());
  char text[32];
  for (int digits : {6, 9, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, literal.real());
    if (std::strtod(text, nullptr) == literal.real()) break;
  }
  return text;
}

void require_fits(const Literal& literal, Dtype dtype, const std::string& what) {
  if (literal.fits(dtype)) return;
  const auto range = [](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    return "the integers from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max());
  };
  const std::string held = dtype == Dtype::boolean   ? "0 and 1"
                           : dtype == Dtype::float16 ? "numbers from -65504 to 65504"
                           : dtype == Dtype::int8    ? range(std::int8_t{})
                           : dtype == Dtype::int32   ? range(std::int32_t{})
                                                     : range(std::int64_t{});
  // Attributes may hold integers as doubles. The message shows the integer.
  const Literal shown = literal.fits(Dtype::int64) ? Literal(literal.as<std::int64_t>()) : literal;
  throw DtypeError(what + " " + to_string(shown) + " does not fit " + name_of(dtype) + ", which holds " + held +
                   ": use " +
                   (dtype == Dtype::float16      ? "float32"
                    : literal.fits(Dtype::int64) ? "int64"
                                                 : "a float dtype"));
}

Array array_of(std::initializer_list<Literal> elements, Dtype dtype, const Shape& shape) {
  Array array(dtype, shape);
  if (array.count() != std::ssize(elements))
    throw ShapeError("an array of shape " + to_string(shape) + " has " + std::to_string(array.count()) +
                     " elements, the list " + std::to_string(elements.size()));
  for (const Literal& each : elements) require_fits(each, dtype, "the literal");
  visit_elements(array, [&]<class T>(T* element) {
    for (const Literal& each : elements) *element++ = each.as<T>();
  });
  return array;
}

}  // namespace xtape
