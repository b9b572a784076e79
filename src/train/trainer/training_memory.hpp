/// Keeps the process of a training within TrainerOptions::memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "player/plan/memory.hpp"

namespace xtape::train {

/// Returns a - b, or 0 if b is larger.
inline std::size_t above(std::size_t a, std::size_t b) {
  return a > b ? a - b : 0;
}

/// The memory of the process during a training: the resident memory, the memory that will become resident, and the
/// memory that is left for plans. All plans play in one arena. The other memory of a plan (its recording, steps,
/// kernels and results) is measured, because it is not known before the plan is made.
class TrainingMemory {
 public:
  /// `later` is the number of bytes of moments and gradients that become resident with the first update. The
  /// constructor adds a reserve for threads and files, whose memory also becomes resident then. `grown` is the growth
  /// of the process by the first plan. `one_shape` is true if all plans of updates are for batches of the same shape.
  TrainingMemory(std::size_t limit, std::shared_ptr<Arena> arena, std::size_t later, std::size_t grown, bool one_shape);
  /// Calls plan(bytes), which must plan the largest step with at most `bytes` bytes. Repeats this until the plan fits
  /// beside the other needs of the process. `counted` is the size of arrays that a plan counts as its own memory,
  /// although they exist without the plan. Throws MemoryError if the limit is too low. The message states the minimal
  /// limit.
  void settle(std::size_t counted, const std::function<void(std::size_t bytes)>& plan);
  /// Drops plans with drop() until there is room for another plan or no plan is left.
  void make_room(const std::function<bool()>& drop);
  /// Drops all plans. Returns whether a plan of `bytes` bytes fits beside the other needs of the process. Always
  /// returns false before settle() has returned.
  bool affords(std::size_t bytes, const std::function<bool()>& drop);
  /// Before the first update, gives back what the process has freed since the plan was made, such as the metadata of
  /// files: it would be resident beside the arena.
  void expect_update() const;
  /// Reports that an update has been made.
  void note_update();

 private:
  /// Returns the needs of the process besides the arena: the resident memory, the memory that becomes resident with the
  /// first update, and the reserve for code, threads and files.
  std::size_t besides() const { return present() + later_; }
  /// Returns the resident memory without the arena.
  std::size_t present() const { return above(resident_bytes(), arena_->resident()); }
  [[noreturn]] void refuse(std::size_t needed, const std::string& most) const;
  std::size_t limit_;
  std::shared_ptr<Arena> arena_;
  std::optional<std::size_t> counted_;  // the argument `counted` of settle(); empty until settle() returns
  std::size_t reserve_;                 // for threads, files, code and the growth of the process
  std::size_t later_;
  std::size_t absent_;           // the part of `later_` for moments and gradients
  std::size_t growth_;           // the largest growth of the process by a plan
  std::size_t peak_before_ = 0;  // the peak of the process before the last plan
  // the result of present() before the last plan, plus moments and gradients that have become resident since then
  std::size_t before_ = 0;
};

}  // namespace xtape::train
