#include "training_memory.hpp"

#include <algorithm>

namespace xtape::train {

TrainingMemory::TrainingMemory(std::size_t limit, std::shared_ptr<Arena> arena, std::size_t later, std::size_t grown,
                             bool one_shape)
    : limit_(limit), arena_(std::move(arena)), growth_(grown) {
  // For threads, files and code; with plans of many shapes, memory that is freed is also in pieces too small for
  // others.
  constexpr std::size_t reserve = std::size_t{5} << 18;
  later_ = later + (one_shape ? reserve : 2 * reserve);
}

std::size_t TrainingMemory::present() const {
  const std::size_t all = resident_bytes();
  return all - std::min(all, arena_->resident());
}

std::size_t TrainingMemory::besides() const {
  return present() + later_;
}

void TrainingMemory::make_room(const std::function<bool()>& drop) {
  const auto is_crowded = [&] { return besides() + arena_->usable() + growth_ > limit_; };
  if (before_ > 0) growth_ = std::max(growth_, present() - std::min(before_, present()));
  while (is_crowded()) {
    return_freed_memory();
    if (!is_crowded() || !drop()) break;
  }
  before_ = present();
}

}  // namespace xtape::train
