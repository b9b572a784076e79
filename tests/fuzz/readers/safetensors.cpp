// Files of arrays.
#include "xtape/safetensors.hpp"

#include <cstring>
#include <fstream>
#include <sstream>

#include "target.hpp"

namespace xtape::fuzz {

namespace {
bool same_bits(const Store& a, const Store& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Store::Entry &left = a[i], &right = b[i];
    if (left.name != right.name || left.value.dtype() != right.value.dtype() ||
        left.value.shape() != right.value.shape() ||
        std::memcmp(left.value.data(), right.value.data(), left.value.bytes()) != 0)
      return false;
  }
  return true;
}
}  // namespace

void safetensors(Input input) {
  const MemoryFile file(input);
  const auto store = accepted([&] { return load_arrays(file.path()); });
  if (!store) return;
  const std::string path = folder() + "/arrays.safetensors";
  save_arrays(path, *store, {{"format", "pt"}});
  require(same_bits(load_arrays(path), *store), "arrays that are saved and loaded have the same bits");
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::string damaged = bytes.str();
  std::size_t elements = 0;
  for (const Store::Entry& entry : *store) elements += entry.value.bytes();
  if (elements == 0) return;
  damaged[damaged.size() - 1 - input.size() % elements] ^= 1;
  const MemoryFile second(damaged);
  require(!accepted([&] { return load_arrays(second.path()); }), "a flipped bit in an array is detected");
}

}  // namespace xtape::fuzz
