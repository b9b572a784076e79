/// Ordinary differential equations.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

/// The method of differentiating a solution.
enum class OdeGradient : std::uint8_t {
  /// Solves the adjoint equation backward in time (Chen et al., 2018, Neural ordinary differential equations). Memory
  /// does not grow with the number of steps. The solver also recomputes the state backward. If the equation is stiff or
  /// dissipative, errors of the state grow on the way back. If they exceed 100 tolerances between two times, the
  /// gradient is NaN. (The tolerance of an array is atol + rtol m, where m is its largest |y| at these two times.) Use
  /// `steps` for such equations.
  adjoint,
  /// Backpropagates through the steps taken. The result is the exact gradient of the discrete solution. Stores the
  /// values of max_steps steps per time.
  steps
};

struct OdeOptions {
  /// A step is accepted if the RMS over all elements of error / (atol + rtol |y|) is at most 1.
  double rtol = 1e-6;
  double atol = 1e-9;
  std::int64_t max_steps = 1000;  ///< The most steps between two times, including rejected steps.
  OdeGradient gradient = OdeGradient::adjoint;
};

/// Returns dy/dt as arrays with the types of y. t is a scalar.
using OdeFunction = std::function<Vars(const Vars& y, const Var& t)>;

/// Records the solution of dy/dt = f(y, t) with y(times[0]) = y0, evaluated at `times` [n]. The times can ascend or
/// descend. Returns the arrays of y with the times as an additional first axis. f may use any vars of the tape. The
/// solution is differentiable with respect to y0, the times and these vars. For `jvp` and second derivatives,
/// OdeGradient::steps is cheaper.
///
/// The method is Dormand and Prince, 1980, of order 5 with an error estimate of order 4. The step size adapts (Hairer,
/// Norsett and Wanner, 1993, Solving ordinary differential equations I, II.4). If the solver does not reach a time
/// within max_steps, the solution is NaN at this and all later times.
///
/// Throws Error if f or y0 is empty, or an option is out of range. Throws DtypeError if y0 and times do not share one
/// float dtype. Throws ShapeError if times is not a vector of at least one time, or f returns other types than y0.
/// Throws HandleError if a var belongs to another tape. After an error, nothing stays recorded.
Vars odeint(const OdeFunction& f, const Vars& y0, const Var& times, const OdeOptions& options = {},
            Caller caller = Caller::here());
/// The same for a state of one array.
Var odeint(const std::function<Var(const Var& y, const Var& t)>& f, const Var& y0, const Var& times,
           const OdeOptions& options = {}, Caller caller = Caller::here());

}  // namespace xtape
