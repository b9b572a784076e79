/// Branches, and loops whose number of steps depends on values. Both are conditional scans: a step takes place only if
/// a condition is true. Players skip all other steps, also in gradients and tangents.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

struct Looped {
  Vars states;     ///< The states after the last step, or `init` if no step took place.
  Var steps;       ///< The number of steps that took place: int64 [].
  Var unfinished;  ///< Whether the condition still holds after max_steps: bool [].
};

/// Applies `body` to states, starting with `init`, as long as `condition` holds for them, at most `max_steps` times.
/// The counterpart in JAX is jax.lax.while_loop. The limit makes the loop differentiable in both modes, any number of
/// times. while_loop calls both functions only to record them. They may use any other vars of the tape (weights), which
/// also get gradients. States have any dtype and keep their types. Random ops of the body draw new numbers at every
/// step. A play draws the numbers of all max_steps steps at once.
///
/// A play of a gradient keeps the values that the gradient needs in arrays of max_steps steps. Other plays keep none.
/// Under `vmap`, a step takes place as long as any example needs it. Each example keeps the states after its own last
/// step.
///
/// Throws ShapeError or DtypeError if the condition is not a single bool, or a next state has another type than the
/// state. Throws HandleError if a var belongs to another tape. Throws Error if the condition, the body or the states
/// are empty, the body returns the wrong number of states or uses `cache`, or max_steps is negative. Errors of the
/// functions propagate. After an error, nothing stays recorded.
Looped while_loop(const std::function<Var(const Vars&)>& condition, const std::function<Vars(const Vars&)>& body,
                  const Vars& init, std::int64_t max_steps, Caller caller = Caller::here());

/// Returns the results of `if_true` for the inputs if the predicate (a single bool) is true, otherwise those of
/// `if_false`. The counterpart in JAX is jax.lax.cond. Both branches must return the same types. Both are recorded, and
/// may use any other vars of the tape. A play runs only the branch that is taken, also in gradients and tangents, but
/// draws random numbers for both. Under `vmap`, a play runs both branches if there are examples for both.
///
/// Throws ShapeError or DtypeError if the predicate is not a single bool, ShapeError if the branches differ in the
/// number or the types of their results, HandleError if a var belongs to another tape. Throws Error if a branch is
/// empty, has no results or uses `cache`. Errors of the branches propagate. After an error, nothing stays recorded.
Vars cond(const Var& predicate, const std::function<Vars(const Vars&)>& if_true,
          const std::function<Vars(const Vars&)>& if_false, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape
