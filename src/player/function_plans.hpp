/// Plans of a function of arrays, one for each combination of their types.
#pragma once

#include <memory>
#include <vector>

#include "xtape/compiled.hpp"

namespace xtape {

/// A function recorded for arguments of these types. Outputs may be empty vars; the player has the others.
struct FunctionPlan {
  std::vector<ValueType> types;
  Vars inputs, outputs;
  Player player;
};

/// The plan of `outputs`, some of which may be empty, on their tape.
FunctionPlan plan_of(const Tape& tape, const std::vector<ValueType>& types, const Vars& inputs, const Vars& outputs,
                     const PlayerOptions& options);
/// Plays a plan.
void play(FunctionPlan& plan, const std::vector<ArrayView>& arguments, std::uint64_t step);

class FunctionPlans {
 public:
  FunctionPlans(Compiled::Function function, const PlayerOptions& options, const Tape& like)
      : function_(std::move(function)), options_(options), like_(like.blank()) {}
  /// The plan for arguments of these types, which lives until clear().
  FunctionPlan& plan_for(const std::vector<ArrayView>& arguments);
  std::size_t size() const { return plans_.size(); }
  void clear() { plans_.clear(); }

 private:
  Compiled::Function function_;
  PlayerOptions options_;
  Tape like_;
  std::vector<std::unique_ptr<FunctionPlan>> plans_;
};

}  // namespace xtape
