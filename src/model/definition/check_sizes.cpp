#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "model/definition/checks.hpp"

namespace xtape::model {

namespace {
constexpr std::size_t shortest = 3;  // characters; shorter names are similar even if they are unrelated

bool is_letter(const std::string& name, std::size_t at) {
  return at < name.size() && std::isalpha(static_cast<unsigned char>(name[at])) != 0;
}

/// Returns whether the character at `at` is a letter next to another letter. Names such as q_len and k_len differ in a
/// letter that stands alone, and differ on purpose.
bool in_word(const std::string& name, std::size_t at) {
  return is_letter(name, at) && ((at > 0 && is_letter(name, at - 1)) || is_letter(name, at + 1));
}

/// Returns the index of the first character in which two names differ.
std::size_t difference(const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// Returns whether `shorter` is `longer` without one letter.
bool lacks_one(const std::string& shorter, const std::string& longer) {
  const std::size_t at = difference(shorter, longer);
  return shorter.size() + 1 == longer.size() && in_word(longer, at) && shorter.substr(at) == longer.substr(at + 1);
}

bool exchanges_two(const std::string& a, const std::string& b) {
  const std::size_t at = difference(a, b);
  return a.size() == b.size() && at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] && is_letter(a, at) &&
         is_letter(a, at + 1) && a.substr(at + 2) == b.substr(at + 2);
}

bool replaces_one(const std::string& a, const std::string& b) {
  const std::size_t at = difference(a, b);
  return a.size() == b.size() && in_word(a, at) && in_word(b, at) && a.substr(at + 1) == b.substr(at + 1);
}

using Counts = std::map<std::string, int>;

void count(const Expression& expression, Counts& counts) {
  each_name(expression, [&](const Expression& each) { ++counts[each.text]; });
}
}  // namespace

bool is_slip(const std::string& name, const std::string& meant, bool replaced) {
  if (std::min(name.size(), meant.size()) < shortest || name == meant) return false;
  return lacks_one(name, meant) || lacks_one(meant, name) || exchanges_two(name, meant) ||
         (replaced && replaces_one(name, meant));
}

void check_sizes(const std::vector<Input>& inputs, const Computation& computation, const VisibleNames& visible) {
  Counts counts;
  for (const Input& input : inputs)
    for (const Line& dim : input.dims) count(dim.value, counts);
  const Counts of_types = counts;
  for (const Line& line : computation.lines) count(line.value, counts);
  for (const auto& result : computation.results) count(result.second.value, counts);
  for (const Input& input : inputs)
    for (const Line& dim : input.dims) {
      const std::string& name = dim.value.text;
      if (dim.value.form != Form::name || name.size() < shortest || counts[name] > 1) continue;
      if (visible.of(name) != Meaning::unknown) continue;
      const auto refuse = [&](const std::string& meant) {
        dim.fail(dim.value.column, "the size '" + name + "' occurs only here; did you mean '" + meant + "'?");
      };
      // computed only here, because there may be very many names
      const std::vector<std::string> all = visible.values();
      for (const std::string& each : std::set<std::string>(all.begin(), all.end()))
        if (is_slip(name, each, true)) refuse(each);
      for (const auto& [each, times] : of_types)
        if (times > 1 && is_slip(name, each, false)) refuse(each);
    }
}

}  // namespace xtape::model
