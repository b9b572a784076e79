#include "process_memory.hpp"

#include <algorithm>

namespace xtape::train {

namespace {
constexpr std::size_t reserve_bytes = std::size_t{2} << 20;
}  // namespace

ProcessMemory::ProcessMemory(std::size_t limit, std::shared_ptr<Arena> arena, std::size_t later, std::size_t grown)
    : limit_(limit), arena_(std::move(arena)), later_(later + reserve_bytes), growth_(grown) {}

std::size_t ProcessMemory::present() const {
  const std::size_t all = resident_bytes();
  return all - std::min(all, arena_->resident());
}

std::size_t ProcessMemory::besides() const {
  return present() + later_;
}

void ProcessMemory::make_room(const std::function<bool()>& drop) {
  const auto is_crowded = [&] { return besides() + arena_->usable() + growth_ > limit_; };
  if (before_ > 0) growth_ = std::max(growth_, present() - std::min(before_, present()));
  while (is_crowded()) {
    return_freed_memory();
    if (!is_crowded() || !drop()) break;
  }
  before_ = present();
}

}  // namespace xtape::train
