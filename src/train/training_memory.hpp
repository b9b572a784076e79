/// Keeps the process of a training within TrainerOptions::memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "plan/memory.hpp"

namespace xtape::train {

/// The memory of the process, seen from the training: what is resident, what is going to be, and what is left for
/// plans. All plans play in one arena. The rest of what a plan holds (its recording, steps, kernels and results) is not
/// known before it is made, so it is measured.
/// a - b, at least 0.
inline std::size_t above(std::size_t a, std::size_t b) {
  return a > b ? a - b : 0;
}

class TrainingMemory {
 public:
  /// `later`: bytes of moments and gradients that become resident with the first update; memory for threads and files
  /// is added, which does so too. `grown`: by how much the process grew with the first plan. `one_shape`: all plans of
  /// updates are for batches of the same shape.
  TrainingMemory(std::size_t limit, std::shared_ptr<Arena> arena, std::size_t later, std::size_t grown, bool one_shape);
  /// Calls plan(bytes), which plans the largest step in at most that, until the plan fits beside what else the process
  /// needs. `counted`: what plans count, but is there anyway. Throws MemoryError, which says the least limit.
  void settle(std::size_t counted, const std::function<void(std::size_t bytes)>& plan);
  /// Drops plans, by drop(), until there is room for another one or none is left.
  void make_room(const std::function<bool()>& drop);
  /// Drops all plans. Returns whether a plan of that many bytes fits beside what else the process needs. None does before
  /// settle() has returned.
  bool affords(std::size_t bytes, const std::function<bool()>& drop);
  /// The first update has been made.
  void updated();

 private:
  /// What the process needs besides the arena: what is resident, what follows with the first update, and what code,
  /// threads and files take after that.
  std::size_t besides() const { return present() + later_; }
  /// What is resident besides the arena.
  std::size_t present() const { return above(resident_bytes(), arena_->resident()); }
  [[noreturn]] void refuse(std::size_t needed, const std::string& most) const;
  std::size_t limit_;
  std::shared_ptr<Arena> arena_;
  std::optional<std::size_t> counted_;  // what plans count, but is there anyway; known once settled
  std::size_t reserve_;                 // for threads, files, code and the growth of the process
  std::size_t later_;
  std::size_t absent_;           // of `later_`, moments and gradients
  std::size_t growth_;           // the most by which a plan let the process grow
  std::size_t peak_before_ = 0;  // the peak of the process before the last plan
  std::size_t before_ = 0;       // what was present before the last plan, and what became so since without it
};

}  // namespace xtape::train
