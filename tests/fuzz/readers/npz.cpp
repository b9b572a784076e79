// ZIP archives of NumPy.
#include "data/arrays/npz.hpp"

#include "target.hpp"

namespace xtape::fuzz {

void npz(Input input) {
  const MemoryFile file(input);
  const auto array = accepted([&] { return read_npz(file.path(), "images"); });
  if (!array) return;
  // Deflate shrinks at most 1032 times, and elements become at most four times as wide.
  require(array->bytes() <= 4 * 1032 * input.size(), "an array has no more elements than its file can have");
  const MemoryFile shorter(input.substr(0, input.size() - 1));
  require(!accepted([&] { return read_npz(shorter.path(), "images"); }), "an archive that is cut off is refused");
}

}  // namespace xtape::fuzz
