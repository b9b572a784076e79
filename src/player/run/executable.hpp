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

}  // namespace xtape
