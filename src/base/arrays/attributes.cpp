#include "xtape/attributes.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/arrays/order.hpp"
#include "base/arrays/visit.hpp"
#include "xtape/literal.hpp"

namespace xtape {

bool operator==(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}
std::string to_string(const ValueType& type) {
  return std::string(name_of(type.dtype)) + " " + to_string(type.shape);
}

void Attributes::set(std::string_view name, Attribute value) {
  auto& items = items_.own();
  for (auto& item : items)
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  items.emplace_back(name, std::move(value));
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

Literal Attributes::number(std::string_view name) const {
  const Attribute* value = find(name);
  if (value != nullptr)
    if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  return get<double>(name);
}

Attribute attribute_of(const Literal& number) {
  if (number.is_whole()) return number.integer();
  return number.real();
}

void Attributes::missing(std::string_view name) const {
  throw Error("attribute '" + std::string(name) +
              (find(name) ? "' has another type than the requested one" : "' is not set"));
}

std::string to_string(const Attribute& value) {
  struct Visitor {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return to_string(Literal(d)); }
    std::string operator()(const std::string& s) const { return "'" + s + "'"; }
    std::string operator()(const std::vector<std::int64_t>& list) const {
      std::string text = "(";
      for (std::size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + std::to_string(list[i]);
      return text + (list.size() == 1 ? ",)" : ")");
    }
    std::string operator()(Dtype dtype) const { return name_of(dtype); }
    std::string operator()(const NamedSizes& sizes) const {
      std::string text = "{";
      for (const auto& [name, size] : sizes) text += (text.size() > 1 ? ", " : "") + name + "=" + std::to_string(size);
      return text + "}";
    }
  };
  return std::visit(Visitor{}, value);
}

namespace {
std::size_t hash_of_attribute(const Attribute& value) {
  return std::visit(
      [](const auto& held) -> std::size_t {
        using T = std::decay_t<decltype(held)>;
        std::size_t hash = 0;
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          for (const std::int64_t each : held) mix(hash, static_cast<std::size_t>(each));
        } else if constexpr (std::is_same_v<T, NamedSizes>) {
          // the order of attributes does not matter
          for (const auto& each : held) hash += std::hash<std::string>()(each.name);
        } else if constexpr (std::is_same_v<T, Dtype>) {
          hash = static_cast<std::size_t>(held);
        } else {
          hash = std::hash<T>()(held);
        }
        return hash;
      },
      value);
}
}  // namespace

std::size_t hash_of(const Attributes& attributes) {
  std::size_t hash = 0;
  for (const auto& item : attributes.items()) mix(hash, hash_of_attribute(item.second));
  return hash;
}

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

void require_fits(const Literal& literal, Dtype dtype, std::string_view what) {
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
  throw DtypeError(std::string(what) + " " + to_string(shown) + " does not fit " + name_of(dtype) + ", which holds " +
                   held + ": use " +
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
