/// Loops whose number of steps depends on values, and branches. Both are conditional scans: scans whose steps take
/// place where a condition is true. Other steps are not played, neither here nor in gradients and tangents.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

struct Looped {
  Vars states;     ///< After the last step that took place; `init` if none did.
  Var steps;       ///< How many took place: int64 [].
  Var unfinished;  ///< Whether the condition holds even so, because max_steps were too few: bool [].
};

/// Applies `body` to states, which begin as `init`, as long as `condition` holds for them, at most `max_steps` times.
/// The model is jax.lax.while_loop; the bound makes the loop differentiable in both modes, any number of times. Both
/// functions are called while recording only, and may use any other vars of the tape (weights), which get gradients
/// too. States have any dtype and keep their types. Random ops of the body draw new numbers at every step, for
/// max_steps steps in one go.
///
/// What gradients need of each step is kept in arrays of max_steps steps, which only a play of a gradient has. Under
/// `vmap`, a step takes place as long as any example needs it; each example keeps the states after its own last step.
///
/// Throws ShapeError or DtypeError if the condition is not one bool, or a next state has another type than the state;
/// HandleError for vars of another tape; Error without a condition, a body or a state, if the body returns another
/// number of states or uses `cache`, for negative max_steps, and what the functions throw. Then nothing stays recorded.
Looped while_loop(const std::function<Var(const Vars&)>& condition, const std::function<Vars(const Vars&)>& body,
                  const Vars& init, std::int64_t max_steps, Caller caller = Caller::here());

/// The results of `if_true` for the inputs if the predicate (one bool) is true, else those of `if_false`, of the same
/// types. Both branches are recorded, and may use any other vars of the tape. Only the one that is taken is played, in
/// gradients and tangents too; but random numbers are drawn for both. The model is jax.lax.cond. Under `vmap`, both
/// branches are played if there are examples for both.
///
/// Throws ShapeError or DtypeError if the predicate is not one bool, ShapeError if the branches differ in the number or
/// the types of their results; HandleError for vars of another tape; Error without a branch or a result, if a branch
/// uses `cache`, and what the branches throw. Then nothing stays recorded.
Vars cond(const Var& predicate, const std::function<Vars(const Vars&)>& if_true,
          const std::function<Vars(const Vars&)>& if_false, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape
