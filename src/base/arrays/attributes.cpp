#include "xtape/attributes.hpp"

#include <functional>

#include "base/arrays/mix.hpp"

namespace xtape {

bool operator==(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}
std::string to_string(const ValueType& type) {
  return std::string(name_of(type.dtype)) + " " + to_string(type.shape);
}

void Attributes::set(const std::string& name, Attribute value) {
  auto& items = items_.own();
  for (auto& item : items)
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  items.emplace_back(name, std::move(value));
}

const Attribute* Attributes::find(const std::string& name) const {
  for (const auto& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

Literal Attributes::number(const std::string& name) const {
  const Attribute* value = find(name);
  if (value != nullptr)
    if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  return get<double>(name);
}

Attribute attribute_of(const Literal& number) {
  if (number.is_whole()) return number.integer();
  return number.real();
}

void Attributes::missing(const std::string& name) const {
  throw Error("attribute '" + name + (find(name) ? "' has another type than the requested one" : "' is not set"));
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
std::size_t hash_of(const Attribute& value) {
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
  for (const auto& item : attributes.items()) mix(hash, hash_of(item.second));
  return hash;
}

}  // namespace xtape
