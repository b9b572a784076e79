/// Plans of a function of arrays, one for each combination of argument types.
#pragma once

#include <memory>
#include <vector>

#include "xtape/compiled.hpp"

namespace xtape {

/// A function recorded for arguments of these types, and its player. Outputs may be empty vars, which the player omits.
struct FunctionPlan {
  std::vector<ValueType> types;
  Vars inputs, outputs;
  Player player;
};

/// Plans `outputs` of `tape`. Some of the outputs may be empty vars.
FunctionPlan plan_of(const Tape& tape, const std::vector<ValueType>& types, const Vars& inputs, const Vars& outputs,
                     const PlayerOptions& options);

/// The plans of one function. A copy shares the recorded and compiled parts, and has its own players for use on another
/// thread.
class FunctionPlans {
 public:
  FunctionPlans(Compiled::Function function, const PlayerOptions& options, const Tape& like);
  FunctionPlans(const FunctionPlans& other) : shared_(other.shared_) {}
  FunctionPlans& operator=(const FunctionPlans&) = delete;
  ~FunctionPlans();
  /// Plays the plan for arguments of these types, and returns the plan. The plan lives until clear().
  FunctionPlan& play(const std::vector<ArrayOrNumber>& arguments, std::uint64_t step);
  std::size_t size() const;  ///< The number of plans, over all copies.
  void clear();              ///< Discards all plans. Other copies keep the plans that they have already played.

 private:
  FunctionPlan& plan_for(const std::vector<ArrayView>& arrays);
  class Shared;
  std::shared_ptr<Shared> shared_;
  std::vector<std::unique_ptr<FunctionPlan>> plans_;
};

}  // namespace xtape
