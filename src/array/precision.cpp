#include "xtape/precision.hpp"

#include <algorithm>
#include <array>

#include "nearest.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::array<const char*, 3> names{"float32", "bf16x3", "bf16"};
}  // namespace

const char* name_of(Precision precision) {
  return names[static_cast<std::size_t>(precision)];
}

Precision precision_named(const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw Error("a precision is float32, bf16x3 or bf16, not '" + name + "'" +
                did_you_mean(name, {names.begin(), names.end()}));
  return static_cast<Precision>(found - names.begin());
}

}  // namespace xtape
