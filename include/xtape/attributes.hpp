/// The types of values and the attributes of calls. Together with the op, they describe a call.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/literal.hpp"
#include "xtape/shared_list.hpp"

namespace xtape {

/// The type of a value, which is known before the value is computed.
struct ValueType {
  Dtype dtype = Dtype::float32;
  Shape shape;
};
bool operator==(const ValueType& a, const ValueType& b);
inline bool operator!=(const ValueType& a, const ValueType& b) {
  return !(a == b);
}
std::string to_string(const ValueType& type);  ///< "float32 (2, 3)".

template <>
inline constexpr const char* kind_of_value<std::int64_t> = "size";
/// Sizes by name, such as the axes of einops patterns and of a model's inputs.
using NamedSizes = Named<std::int64_t>;

/// The value of an attribute.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, Dtype, NamedSizes>;
std::string to_string(const Attribute& value);  ///< The form in definitions: "true", "'tanh'", "(0, 1)".
/// Converts the literal to an attribute: an int64 if it is_whole(), otherwise a double.
Attribute attribute_of(const Literal& number);

/// The attributes of a call by name. Those of a node are complete, in the order of the op's specs. Copies are cheap.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) : items_(items) {}

  void set(std::string_view name, Attribute value);    ///< Replaces the value of this name, or appends it.
  const Attribute* find(std::string_view name) const;  ///< Null if the name is absent. Valid until the next change.
  /// The value. Throws Error if the name is absent or the value is not a T. Does not convert.
  template <class T>
  const T& get(std::string_view name) const {
    const Attribute* value = find(name);
    if (const T* found = std::get_if<T>(value)) return *found;
    missing(name);
  }
  /// The value of a numeric attribute (AttributeType number, element or integer). Errors are those of `get`.
  Literal number(std::string_view name) const;
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_.get(); }
  friend bool operator==(const Attributes& a, const Attributes& b) { return a.items_ == b.items_; }

 private:
  [[noreturn]] void missing(std::string_view name) const;
  SharedList<std::pair<std::string, Attribute>> items_;
};

}  // namespace xtape
