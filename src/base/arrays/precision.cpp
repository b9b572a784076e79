#include "xtape/precision.hpp"

#include <algorithm>
#include <array>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::array<const char*, 5> names_of_precisions{"float32", "bf16x3", "bf16", "int8", "int8_training"};
constexpr std::array<const char*, 3> bits_names{"usual", "same", "fast"};

/// Returns the value with this name. `valid` says which names there are.
template <class Value, std::size_t count>
Value named(const std::array<const char*, count>& names, const std::string& name, const char* valid) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw Error(std::string(valid) + ", not '" + name + "'" + did_you_mean(name, {names.begin(), names.end()}));
  return static_cast<Value>(found - names.begin());
}
}  // namespace

const char* name_of(Precision precision) {
  return names_of_precisions[static_cast<std::size_t>(precision)];
}

Precision precision_named(const std::string& name) {
  return named<Precision>(names_of_precisions, name, "a precision is float32, bf16x3, bf16, int8 or int8_training");
}

std::vector<std::string> precision_names() {
  return {names_of_precisions.begin(), names_of_precisions.end()};
}

const char* name_of(Bits bits) {
  return bits_names[static_cast<std::size_t>(bits)];
}

Bits bits_named(const std::string& name) {
  return named<Bits>(bits_names, name, "bits are usual, same or fast");
}

}  // namespace xtape
