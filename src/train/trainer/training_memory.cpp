#include "train/trainer/training_memory.hpp"

#include <algorithm>
#include <utility>

#include "player/plan/budget.hpp"

namespace xtape::train {

TrainingMemory::TrainingMemory(std::size_t limit, std::shared_ptr<Arena> arena, std::size_t later, std::size_t grown,
                               bool one_shape)
    : limit_(limit), arena_(std::move(arena)), absent_(later), growth_(grown) {
  // The reserve for threads, files and code. It is twice as large for plans of many shapes, because freed memory may
  // then remain in fragments that are too small for reuse.
  constexpr std::size_t least = std::size_t{5} << 18;
  reserve_ = one_shape ? least : 2 * least;
  later_ = later + reserve_;
}

void TrainingMemory::settle(std::size_t counted, const std::function<void(std::size_t bytes)>& plan) {
  // The memory of a plan besides its values is not known until it is made. The plan is therefore repeated until
  // everything fits.
  constexpr std::size_t little = std::size_t{1} << 17;
  for (std::size_t before = 0; before + little < besides();) {
    before = besides();
    try {
      plan(before > counted ? above(limit_, before - counted) : limit_);
    } catch (const LimitError& error) {
      plan(error.least());
      refuse(std::max(before, besides()) + above(error.least(), counted), error.most());
    }
  }
  if (peak_resident_bytes() > limit_) refuse(0, "");
  counted_ = counted;
}

/// Throws MemoryError. The training needs `needed` bytes, or the peak memory of the process if the peak is larger.
/// `most` describes the memory of the largest plan.
void TrainingMemory::refuse(std::size_t needed, const std::string& most) const {
  constexpr std::size_t varies = std::size_t{3} << 18;  // variation of the resident memory between processes
  const std::size_t taken = peak_resident_bytes();
  const std::size_t least = std::max(needed, taken) + varies;
  throw MemoryError(
      "training needs at least " + bytes_text(least) + " of memory, but 'memory' is " + bytes_text(limit_) + ": " +
          (needed > taken ? bytes_text(present()) + " are resident already, " + bytes_text(later_) +
                                " are for moments, gradients and growth, and the largest batch needs " + most
                          : "the process took " + bytes_text(taken) + " to make the model and read the data"),
      least);
}

bool TrainingMemory::affords(std::size_t bytes, const std::function<bool()>& drop) {
  if (!counted_) return false;
  while (drop()) continue;
  return_freed_memory();
  return besides() + above(bytes, *counted_) + reserve_ <= limit_;
}

void TrainingMemory::make_room(const std::function<bool()>& drop) {
  const auto is_crowded = [&] { return besides() + arena_->usable() + growth_ > limit_; };
  if (before_ > 0) {
    std::size_t highest = present();
    if (const std::size_t peak = peak_resident_bytes();
        peak > peak_before_)  // the temporary memory of planning counts, too
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

void TrainingMemory::expect_update() const {
  if (later_ > 0) return_freed_memory();
}

void TrainingMemory::note_update() {
  before_ += std::exchange(absent_, 0);
  later_ = 0;
}

}  // namespace xtape::train
