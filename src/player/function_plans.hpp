/// Plans of a function of arrays, one for each combination of their types.
#pragma once

#include <memory>
#include <vector>

#include "xtape/compiled.hpp"

namespace xtape {

/// A function recorded for arguments of these types, and a player of it. Outputs may be empty vars; the player has the
/// others.
struct FunctionPlan {
  std::vector<ValueType> types;
  Vars inputs, outputs;
  Player player;
};

/// The plan of `outputs`, some of which may be empty, on their tape.
FunctionPlan plan_of(const Tape& tape, const std::vector<ValueType>& types, const Vars& inputs, const Vars& outputs,
                     const PlayerOptions& options);

/// The plans of one function. A copy shares what was recorded and compiled, and has players of its own, for another
/// thread.
class FunctionPlans {
 public:
  FunctionPlans(Compiled::Function function, const PlayerOptions& options, const Tape& like);
  FunctionPlans(const FunctionPlans& other) : shared_(other.shared_) {}
  FunctionPlans& operator=(const FunctionPlans&) = delete;
  ~FunctionPlans();
  /// Plays the plan for arguments of these types, and returns it. The plan lives until clear().
  FunctionPlan& play(const std::vector<ArrayOrNumber>& arguments, std::uint64_t step);
  std::size_t size() const;  ///< The number of plans of all copies.
  void clear();              ///< Copies keep the plans that they have played.

 private:
  FunctionPlan& plan_for(const std::vector<ArrayView>& arrays);
  class Shared;
  std::shared_ptr<Shared> shared_;
  std::vector<std::unique_ptr<FunctionPlan>> plans_;
};

}  // namespace xtape
