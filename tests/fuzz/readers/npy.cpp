// Arrays of NumPy.
#include "xtape/npy.hpp"

#include "target.hpp"

namespace xtape::fuzz {

void npy(Input input) {
  const MemoryFile file(input);
  const auto array = accepted([&] { return load_npy(file.path()); });
  if (!array) return;
  // Elements become at most four times as wide.
  require(array->bytes() <= 4 * input.size(), "an array has no more elements than its file");
  const MemoryFile longer(std::string(input) + "x");
  require(!accepted([&] { return load_npy(longer.path()); }), "a byte too many is refused");
  if (array->count() == 0) return;
  const MemoryFile shorter(input.substr(0, input.size() - 1));
  require(!accepted([&] { return load_npy(shorter.path()); }), "a missing byte is refused");
}

}  // namespace xtape::fuzz
