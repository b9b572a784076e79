// Finds the first difference between two saved plays.
#include <cstring>
#include <iostream>

#include "cli/commands/diff.hpp"

namespace xtape::cli {

bool same_plays(const std::string& first_path, const std::string& second_path) {
  const SavedPlay one = load_play(first_path), other = load_play(second_path);
  const RecordedPlay &first = one.play, &second = other.play;
  if (!same_tapes({first.tape, one.outputs}, {second.tape, other.outputs})) return false;
  for (const auto& [name, ours] : first.inputs) {
    const Array& theirs = second.inputs.at(name);  // exists, because the tapes are the same
    if (std::memcmp(ours.data(), theirs.data(), ours.bytes()) == 0) continue;
    std::cout << "the same tapes; input '" << name << "' has other elements\n";
    return false;
  }
  if (first.options.precision != second.options.precision) {
    std::cout << "the same tapes and inputs; the precision of products is " << name_of(first.options.precision)
              << ", and " << name_of(second.options.precision) << '\n';
    return false;
  }
  if (first.options.seed == second.options.seed && first.step == second.step) return true;
  std::cout << "the same tapes and inputs; the random numbers differ: seed " << first.options.seed << ", step "
            << first.step << ", and seed " << second.options.seed << ", step " << second.step << '\n';
  return false;
}

}  // namespace xtape::cli
