#include "training_memory.hpp"

#include <algorithm>
#include <utility>

namespace xtape::train {

namespace {
std::size_t above(std::size_t a, std::size_t b) {
  return a - std::min(a, b);
}
}  // namespace

TrainingMemory::TrainingMemory(std::size_t limit, std::shared_ptr<Arena> arena, std::size_t later, std::size_t grown,
                               bool one_shape)
    : limit_(limit), arena_(std::move(arena)), absent_(later), growth_(grown) {
  // For threads, files and code; with plans of many shapes, memory that is freed is also in pieces too small for
  // others.
  constexpr std::size_t reserve = std::size_t{5} << 18;
  later_ = later + (one_shape ? reserve : 2 * reserve);
}

std::size_t TrainingMemory::present() const {
  return above(resident_bytes(), arena_->resident());
}

std::size_t TrainingMemory::besides() const {
  return present() + later_;
}

void TrainingMemory::make_room(const std::function<bool()>& drop) {
  const auto is_crowded = [&] { return besides() + arena_->usable() + growth_ > limit_; };
  if (before_ > 0) {
    std::size_t highest = present();
    if (const std::size_t peak = peak_resident_bytes();
        peak > peak_before_)  // what planning took for a moment counts too
      highest = std::max(highest, above(peak, arena_->resident()));
    growth_ = std::max(growth_, above(highest, before_));
  }
  while (is_crowded()) {
    return_freed_memory();
    if (!is_crowded() || !drop()) break;
  }
  before_ = present();
  peak_before_ = peak_resident_bytes();
}

void TrainingMemory::updated() {
  before_ += std::exchange(absent_, 0);
  later_ = 0;
}

}  // namespace xtape::train
