#include "player/run/packed_weights.hpp"

namespace xtape {

PackedWeight::PackedWeight(const std::atomic<std::uint64_t>& changes, std::size_t bytes)
    : changes_(changes), memory_(Dtype::int8, {static_cast<std::int64_t>(bytes)}) {}

std::shared_ptr<PackedWeight> PackedWeights::of(const std::string& form, std::size_t bytes) {
  const std::lock_guard lock(adding_);
  std::shared_ptr<PackedWeight>& found = weights_[form];
  if (!found) found = std::make_shared<PackedWeight>(changes_, bytes);
  return found;
}

std::shared_ptr<PackedWeights> make_packed_weights() {
  return std::make_shared<PackedWeights>();
}
void repack(PackedWeights& weights) {
  weights.repack();
}

}  // namespace xtape
