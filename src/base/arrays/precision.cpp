#include "xtape/precision.hpp"

#include <algorithm>
#include <array>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::array<const char*, 3> precision_names{"float32", "bf16x3", "bf16"};
}  // namespace

const char* name_of(Precision precision) {
  return precision_names[static_cast<std::size_t>(precision)];
}

Precision precision_named(const std::string& name) {
  const auto found = std::ranges::find(precision_names, name);
  if (found == precision_names.end())
    throw Error("a precision is float32, bf16x3 or bf16, not '" + name + "'" +
                did_you_mean(name, {precision_names.begin(), precision_names.end()}));
  return static_cast<Precision>(found - precision_names.begin());
}

}  // namespace xtape
