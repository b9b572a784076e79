/// The data that the players of an executable share.
#pragma once

#include <mutex>

#include "player/plan/plan.hpp"
#include "xtape/player.hpp"

namespace xtape {

struct Executable::Data {
  Tape tape;                       // the caller's tape
  const OpTable* rules = nullptr;  // the op table that the tape had at planning time
  Vars outputs;
  PlayerOptions options;
  int threads = 1;
  PlannedProgram planned;
  mutable std::once_flag described;
  mutable Plan plan;  // made at the first call of plan()

  /// Returns the location of an output. Throws HandleError for a var of another tape, and Error for a var that is not
  /// an output.
  const PlannedOutput& output(const Var& var) const;
};

/// Limits BLAS calls of this thread to one thread, because xtape distributes products over threads itself. Restores the
/// caller's setting on destruction.
class SingleThreadedBlas {
 public:
  SingleThreadedBlas();
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
  ~SingleThreadedBlas();

 private:
  int before_;
};

}  // namespace xtape
