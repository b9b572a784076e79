// Converts attributes and single elements to and from JSON without losing a bit.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/arrays/visit.hpp"
#include "tape/tape_json.hpp"

namespace xtape {

namespace {
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();

template <class Bits, class Number>
Bits bits_in(Number number) {
  static_assert(sizeof(Bits) == sizeof(Number));
  Bits bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

/// The unsigned integer type with the size of T.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 8, std::uint64_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

template <class Number>
Json json_of_float(Number number) {
  const auto value = static_cast<double>(number);
  if (std::isinf(value)) return {{"number", value < 0 ? "-inf" : "inf"}};
  if (std::isnan(value))
    return {{"bits", hexadecimal(bits_in<BitsOf<Number>>(number)).substr(16 - 2 * sizeof(Number))}};
  return value;
}

template <class Number>
Number float_of(const JsonNode& node) {
  if (node.has("bits")) {
    node.only({"bits"});
    const auto bits = static_cast<BitsOf<Number>>(bits_of(node.at("bits"), 2 * sizeof(Number)));
    Number number;
    std::memcpy(static_cast<void*>(&number), &bits, sizeof number);
    return number;
  }
  double value = 0;
  if (node.is_object()) {
    node.only({"number"});
    const std::string& text = node.at("number").text();
    if (text != "inf" && text != "-inf") node.at("number").fail("\"inf\" or \"-inf\" belongs here");
    value = text == "inf" ? HUGE_VAL : -HUGE_VAL;
  } else {
    if (!node.json().is_number_float()) node.fail("a number with a point or exponent belongs here, such as 2.0");
    value = node.number();
    constexpr double most =
        sizeof(Number) == 8 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    if (std::abs(value) > most || static_cast<double>(static_cast<Number>(value)) != value)
      node.fail(std::string("no ") + name_of(dtype_of<Number>()) + " has exactly this value");
  }
  return static_cast<Number>(value);
}
}  // namespace

std::string hexadecimal(std::uint64_t bits) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  return text;
}

std::optional<std::uint64_t> bits_of(const std::string& text, std::size_t digits) {
  std::uint64_t bits = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (failed != std::errc() || hexadecimal(bits).substr(16 - digits) != text) return std::nullopt;
  return bits;
}
std::uint64_t bits_of(const JsonNode& node, std::size_t digits) {
  const std::optional<std::uint64_t> bits = bits_of(node.text(), digits);
  if (!bits) node.fail(std::to_string(digits) + " lower-case hexadecimal digits belong here");
  return *bits;
}

Json json_of(double number) {
  return json_of_float(number);
}

Json json_of(const Attribute& value) {
  struct Visitor {
    Json operator()(bool flag) const { return flag; }
    Json operator()(std::int64_t integer) const { return integer; }
    Json operator()(double number) const { return json_of(number); }
    Json operator()(const std::string& text) const { return text; }
    Json operator()(const std::vector<std::int64_t>& list) const { return list; }
    Json operator()(Dtype dtype) const { return {{"dtype", name_of(dtype)}}; }
    Json operator()(const NamedSizes& sizes) const {
      Json object = Json::object();
      for (const auto& [name, size] : sizes) object[name] = size;
      return {{"sizes", object}};
    }
  };
  return std::visit(Visitor{}, value);
}

Dtype dtype_of(const JsonNode& node) {
  try {
    return dtype_named(node.text());
  } catch (const DtypeError& error) {
    node.fail(error.what());
  }
}

Attribute attribute_of(const JsonNode& node) {
  const Json& json = node.json();
  if (json.is_boolean()) return node.flag();
  if (json.is_number_integer()) return node.integer(least, greatest);
  if (json.is_number_float()) return node.number();
  if (node.is_string()) return node.text();
  if (node.is_array()) {
    std::vector<std::int64_t> list;
    for (const JsonNode& element : node.elements()) list.push_back(element.integer(least, greatest));
    return list;
  }
  if (node.has("dtype")) {
    node.only({"dtype"});
    return dtype_of(node.at("dtype"));
  }
  if (node.has("sizes")) {
    node.only({"sizes"});
    NamedSizes sizes;
    for (const auto& [name, size] : node.at("sizes").entries()) sizes.add(name, size.integer(least, greatest));
    return sizes;
  }
  if (node.has("number") || node.has("bits")) return float_of<double>(node);
  node.fail(
      "the value of an attribute belongs here: true, 3, 3.0, \"text\", [1, 2], or an object with the key dtype, "
      "sizes, number or bits");
}

Json json_of_element(const Array& array) {
  return visit_elements(array, [&]<class T>(const T* element) -> Json {
    if constexpr (is_floating(dtype_of<T>()))
      return json_of_float(*element);
    else
      return *element;
  });
}

Array element_of(const JsonNode& node, Dtype dtype) {
  Array array(dtype, {});
  visit_elements(array, [&]<class T>(T* element) {
    if constexpr (is_floating(dtype_of<T>()))
      *element = float_of<T>(node);
    else if constexpr (std::is_same_v<T, bool>)
      *element = node.flag();
    else
      *element = static_cast<T>(node.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  });
  return array;
}

}  // namespace xtape
