/// Ordinary differential equations.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

/// How a solution is differentiated.
enum class OdeGradient : std::uint8_t {
  /// Solves another equation backward in time (Chen et al., 2018, Neural ordinary differential equations). Memory
  /// does not grow with the number of steps. The state is computed backward too. Where the equation forgets its past
  /// (stiff, dissipative), errors grow on the way back. If they exceed 100 tolerances, the gradient is NaN: use `steps`
  /// there. The tolerance of an array is that of its largest element, at the later or the earlier time.
  adjoint,
  /// Through the steps that were taken: the gradient of what was computed. Keeps values of max_steps steps per time.
  steps
};

struct OdeOptions {
  /// The error of a step is at most atol + rtol |y|: the root of the mean square over all elements.
  double rtol = 1e-6;
  double atol = 1e-9;
  std::int64_t max_steps = 1000;  ///< Between two times, rejected ones included.
  OdeGradient gradient = OdeGradient::adjoint;
};

/// The derivative of the state y by the time t, a scalar: arrays of the types of y.
using OdeFunction = std::function<Vars(const Vars& y, const Var& t)>;

/// Records the solution of dy/dt = f(y, t) that is `y0` at times[0], at all `times` [n], in either direction. Returns
/// the arrays of y with the times as a further first axis. f may use any vars of the tape. The solution has derivatives
/// by y0, the times and these vars; for `jvp` and second derivatives OdeGradient::steps is the cheaper form.
///
/// Dormand and Prince, 1980, of order 5 with an error estimate of order 4; the size of steps adapts (Hairer, Norsett
/// and Wanner, 1993, Solving ordinary differential equations I, II.4). From a time that is not reached within max_steps
/// on, the solution is NaN.
///
/// Throws Error without a function or y0, and for options out of range; DtypeError unless y0 and times have one float
/// dtype; ShapeError if times is not a vector of at least one time, or f gives other types than y0; HandleError for
/// vars of another tape. Then nothing stays recorded.
Vars odeint(const OdeFunction& f, const Vars& y0, const Var& times, const OdeOptions& options = {},
            Caller caller = Caller::here());
/// The same for one array.
Var odeint(const std::function<Var(const Var& y, const Var& t)>& f, const Var& y0, const Var& times,
           const OdeOptions& options = {}, Caller caller = Caller::here());

}  // namespace xtape
