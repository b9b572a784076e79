#include "nearest.hpp"

#include <algorithm>
#include <cstddef>

#include "xtape/named.hpp"

namespace xtape {

namespace {
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}
}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 200;  // longer texts are not names
  std::string best;
  if (name.size() > longest) return best;
  std::size_t least = name.size() / 2 + 2;  // a name at this distance or further is not a misspelling
  for (const std::string& each : names) {
    if (each.size() > longest) continue;
    const std::size_t distance = edit_distance(name, each);
    if (distance < least) {
      least = distance;
      best = each;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  const std::string best = nearest(name, names);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

void throw_no_such_name(const char* kind, const std::string& name, const std::vector<std::string>& names) {
  throw Error(std::string("there is no ") + kind + " '" + name + "'" + did_you_mean(name, names));
}

}  // namespace xtape
