#include "xtape/odeint.hpp"

#include <cmath>

#include "ops/recording/enclosed.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/custom_gradient.hpp"
#include "xtape/grad.hpp"
#include "xtape/loops.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"

namespace xtape {

namespace {
// The coefficients of Dormand and Prince: times and weights of the stages, and the weights of the error. The weights of
// the last stage are also the weights of the step.
constexpr double stage_times[6] = {1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
constexpr double stage_weights[6][6] = {{1.0 / 5},
                                        {3.0 / 40, 9.0 / 40},
                                        {44.0 / 45, -56.0 / 15, 32.0 / 9},
                                        {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                                        {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
                                        {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
constexpr double error_weights[7] = {71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                     -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

constexpr double most_tolerances = 100;  // the largest error of the adjoint state, in tolerances

Vars appended(Vars first, const Vars& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}
Vars part(const Vars& vars, std::size_t begin, std::size_t count) {
  return {vars.begin() + static_cast<std::ptrdiff_t>(begin), vars.begin() + static_cast<std::ptrdiff_t>(begin + count)};
}

/// A point of a solution: the state, its derivative, the time, and the (positive) size of the next step.
struct Point {
  Vars y, slope;
  Var t, size;

  Vars states() const { return appended(appended(y, slope), {t, size}); }
  static Point of(const Vars& states) {
    const std::size_t arrays = (states.size() - 2) / 2;
    return {part(states, 0, arrays), part(states, arrays, arrays), states[2 * arrays], states[2 * arrays + 1]};
  }
};

class Solver {
 public:
  Solver(OdeFunction f, const OdeOptions& options) : f_(std::move(f)), options_(options) {}

  /// The first point. The size of its step is the initial guess of Hairer, Norsett and Wanner, II.4.
  Point begin(const Vars& y, const Var& t) const {
    const Vars slope = f_(y, t);
    const Var state_norm = norm(y, y, y), slope_norm = norm(slope, y, y);
    const Var is_small = less(state_norm, 1e-5) | less(slope_norm, 1e-5);
    return {y, slope, t, stop_gradient(where(is_small, 1e-6, 0.01 * state_norm / slope_norm))};
  }

  /// Returns the point at the time `end`. Its state is NaN if the steps do not reach `end`.
  Point advance(const Point& from, const Var& end) const {
    const auto goes_on = [&](const Vars& states) { return not_equal(Point::of(states).t, end); };
    const auto step = [&](const Vars& states) { return stepped(Point::of(states), end).states(); };
    const Looped loop = while_loop(goes_on, step, from.states(), options_.max_steps);
    Point reached = Point::of(loop.states);
    // `left` is 0. Adding left * slope gives the state its derivative with respect to `end` even if no step was taken.
    // If the steps did not reach `end`, `left` is NaN, so that the gradients are NaN, too.
    const Var left = where(loop.unfinished, std::nan(""), end - reached.t);
    for (std::size_t i = 0; i < reached.y.size(); ++i)
      reached.y[i] = reached.y[i] * where(loop.unfinished, std::nan(""), ones_like(end)) + left * reached.slope[i];
    reached.t = end;
    return reached;
  }

  /// Returns the RMS over all elements of value / tolerance. The larger of |before| and |after| determines the
  /// tolerance.
  Var norm(const Vars& values, const Vars& before, const Vars& after) const {
    Var total;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Var most = options_.atol + options_.rtol * maximum(abs(before[i]), abs(after[i]));
      const Var part = sum(square(values[i] / most));
      total = total.empty() ? part : total + part;
      count += count_of(values[i].shape());
    }
    return sqrt(total / static_cast<double>(std::max<std::int64_t>(count, 1)));
  }

 private:
  /// Takes one step, at most to `end`. If its error is too large, the point stays and the next step is smaller.
  Point stepped(const Point& at, const Var& end) const {
    const Var left = end - at.t;
    const Var is_last = greater_equal(at.size, abs(left));
    const Var h = where(is_last, left, at.size * sign(left));
    std::vector<Vars> slopes{at.slope};
    Vars y;
    for (std::size_t stage = 0; stage < 6; ++stage) {
      y = at.y;
      add(y, h, slopes, stage_weights[stage]);
      slopes.push_back(f_(y, at.t + stage_times[stage] * h));
    }
    Vars error;
    for (const Var& each : at.y) error.push_back(zeros_like(each));
    add(error, h, slopes, error_weights);
    const Var size = stop_gradient(norm(error, at.y, y));
    const Var accepted = less_equal(size, 1);  // false for NaN
    const Var factor = clip(0.9 * pow(maximum(size, 1e-10), -0.2), 0.2, 10);
    const Var next = abs(stop_gradient(h)) * where(equal(size, size), factor, 0.2);
    Point point{at.y, at.slope, where(accepted, where(is_last, end, at.t + h), at.t),
                where(accepted & is_last, maximum(next, at.size), next)};
    for (std::size_t i = 0; i < y.size(); ++i) {
      point.y[i] = where(accepted, y[i], at.y[i]);
      point.slope[i] = where(accepted, slopes.back()[i], at.slope[i]);
    }
    return point;
  }

  /// Adds h times the weighted sum of the slopes.
  static void add(Vars& y, const Var& h, const std::vector<Vars>& slopes, const double* weights) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      Var sum;
      for (std::size_t k = 0; k < slopes.size(); ++k) {
        if (weights[k] == 0) continue;
        const Var term = weights[k] * slopes[k][i];
        sum = sum.empty() ? term : sum + term;
      }
      y[i] = y[i] + h * sum;
    }
  }

  OdeFunction f_;
  const OdeOptions& options_;
};

ScanOptions along_times(bool reverse) {
  ScanOptions options;
  options.axis = 0;
  options.reverse = reverse;
  return options;
}

/// Returns the solution at all times. Gradients flow back through all steps of the solver.
Vars by_steps(const OdeFunction& f, const Vars& y0, const Var& times, const OdeOptions& options) {
  const Solver solver(f, options);
  const auto to_next = [&](const Vars& end, const Vars& states) {
    const Point reached = solver.advance(Point::of(states), end[0]);
    return std::make_pair(reached.y, reached.states());
  };
  const Point first = solver.begin(y0, squeeze(slice(times, {0}, {1}), {0}));
  Vars solution = scan(to_next, {slice(times, {1}, {open_end})}, first.states(), along_times(false)).outputs;
  for (std::size_t i = 0; i < y0.size(); ++i) solution[i] = concat({expand_dims(y0[i], 0), solution[i]}, 0);
  return solution;
}

/// The function f of dy/dt = f, as a body. Its inputs are the state, the time and the values that f uses.
class OdeEquation {
 public:
  OdeEquation(Tape tape, const OdeFunction& f, const Vars& y0, const Var& times) : arrays_(y0.size()) {
    std::vector<ValueType> types = types_of(y0);
    types.push_back({times.dtype(), {}});
    body_ = enclosed(tape, types, [&](const Vars& given) {
      const Vars slope = f(part(given, 0, arrays_), given.back());
      require_types("odeint: the function", slope, {types.begin(), types.end() - 1});
      return slope;
    });
    std::vector<bool> marked;
    for (const ValueId& id : body_.body->inputs()) marked.push_back(is_floating(body_.body->type(id).dtype));
    marked[arrays_] = false;  // no gradient for the time
    const auto all = [](const Vars& outputs, const Vars& inputs, const Vars& cotangents) {
      GradOptions options;
      options.materialize_grads = true;
      return grad(outputs, inputs, cotangents, options);
    };
    back_ = pullback(*body_.body, marked, all);
  }

  const Vars& captured() const { return body_.captured; }
  Vars slope(const Vars& y, const Var& t, const Vars& captured) const {
    return inline_body(t.tape(), *body_.body, appended(appended(y, {t}), captured));
  }
  /// Returns the products of `a`, the cotangents of dy/dt, and the Jacobians of dy/dt with respect to y and to the
  /// floats of `captured`.
  Vars back(const Vars& y, const Var& t, const Vars& captured, const Vars& a) const {
    return inline_body(t.tape(), back_, appended(appended(appended(y, {t}), captured), a));
  }

 private:
  std::size_t arrays_;
  Enclosed body_;
  Tape back_;
};

Var inner_product(const Vars& a, const Vars& b) {
  Var total = sum(a[0] * b[0]);
  for (std::size_t i = 1; i < a.size(); ++i) total = total + sum(a[i] * b[i]);
  return total;
}

/// Returns the gradients with respect to y0, times and `captured`, given the solution and its cotangents. Between two
/// times, the state, its cotangent a and the gradients g with respect to `captured` solve dy/dt = f, da/dt = -a df/dy,
/// dg/dt = -a df/dcaptured. The gradients are NaN if the backward solution does not arrive at the forward state,
/// because the error has then grown on the way back.
Vars by_adjoint(const OdeEquation& equation, const Var& times, const Vars& captured, const Vars& solution,
                const Vars& cotangents, const OdeOptions& options) {
  const std::size_t arrays = solution.size();
  const auto backward = [&](const Vars& state, const Var& t) {
    const Vars y = part(state, 0, arrays);
    Vars changes = equation.slope(y, t, captured);
    for (const Var& each : equation.back(y, t, captured, part(state, arrays, arrays))) changes.push_back(-each);
    return changes;
  };
  const Solver solver(backward, options);
  const auto to_earlier = [&](const Vars& given, const Vars& states) {
    const Vars y = part(given, 0, arrays), arriving = part(given, arrays, arrays);
    const Vars before = part(given, 2 * arrays, arrays);
    const Var &t = given[3 * arrays], &earlier = given[3 * arrays + 1];
    Vars augmented = appended(y, states);
    for (std::size_t i = 0; i < arrays; ++i) augmented[arrays + i] = augmented[arrays + i] + arriving[i];
    const Vars reached = solver.advance(solver.begin(augmented, t), earlier).y;
    Vars off = part(reached, 0, arrays), next = part(reached, arrays, reached.size() - arrays);
    // the largest element of each array determines the tolerance, because the tolerance of an element that crosses 0
    // would be too small
    Vars largest;
    for (std::size_t i = 0; i < arrays; ++i) {
      off[i] = off[i] - before[i];
      const Var both = maximum(abs(before[i]), abs(y[i]));
      largest.push_back(count_of(both.shape()) == 0 ? both : max(both));
    }
    const Var factor = where(less_equal(solver.norm(off, largest, largest), most_tolerances), 1, std::nan(""));
    for (Var& each : next) each = each * cast(stop_gradient(factor), each.dtype());
    const Var by_time = inner_product(arriving, equation.slope(y, t, captured));
    return std::make_pair(Vars{by_time}, next);
  };
  Vars sequences, init;
  for (const Vars* rows : {&solution, &cotangents})
    for (const Var& each : *rows) sequences.push_back(slice(each, {1}, {open_end}));
  for (const Var& each : solution) sequences.push_back(slice(each, {0}, {-1}));
  sequences.push_back(slice(times, {1}, {open_end}));
  sequences.push_back(slice(times, {0}, {-1}));
  const auto first = [](const Var& rows) { return squeeze(slice(rows, {0}, {1}), {0}); };
  Vars y0;
  for (const Var& each : solution) y0.push_back(first(each));
  for (const Var& each : y0) init.push_back(zeros_like(each));
  for (const Var& each : captured)
    if (is_floating(each.dtype())) init.push_back(zeros_like(each));
  const Scanned found = scan(to_earlier, sequences, init, along_times(true));

  const Vars a = part(found.states, 0, arrays);
  Vars gradients;
  for (std::size_t i = 0; i < arrays; ++i) gradients.push_back(a[i] + first(cotangents[i]));
  const Var by_start = -inner_product(a, equation.slope(y0, first(times), captured));
  gradients.push_back(concat({reshape(by_start, {1}), found.outputs[0]}, 0));
  std::size_t next = arrays;
  for (const Var& each : captured) gradients.push_back(is_floating(each.dtype()) ? found.states[next++] : Var());
  return gradients;
}

void check_arguments(const Vars& y0, const Var& times, const OdeOptions& options) {
  if (y0.empty()) throw Error("odeint: needs y0");
  if (!(options.rtol >= 0) || !(options.atol > 0))
    throw Error("odeint: rtol must not be negative, and atol must be above 0");
  if (options.max_steps < 1)
    throw Error("odeint: max_steps must be at least 1, got " + std::to_string(options.max_steps));
  for (const Var& each : y0) {
    if (each.tape() != times.tape()) throw HandleError("odeint: y0 and the times belong to different tapes");
    if (!is_floating(each.dtype()) || each.dtype() != times.dtype())
      throw DtypeError("odeint: y0 and the times must have one float dtype, got " + to_string(each.type()) + " and " +
                       to_string(times.type()));
  }
  if (times.rank() != 1 || times.size(0) < 1)
    throw ShapeError("odeint: the times must be a vector of at least one, got " + to_string(times.type()));
}

Vars record_odeint(const OdeFunction& f, const Vars& y0, const Var& times, const OdeOptions& options) {
  const OdeEquation equation(times.tape(), f, y0, times);
  const OdeFunction slope = [&](const Vars& y, const Var& t) { return equation.slope(y, t, equation.captured()); };
  if (options.gradient == OdeGradient::steps) return by_steps(slope, y0, times, options);
  const auto solve = [&](const Vars&) { return by_steps(slope, y0, times, options); };
  const auto rule = [&](const Vars& inputs, const Vars& solution, const Vars& cotangents) {
    const std::size_t given = y0.size() + 1;
    return by_adjoint(equation, inputs[y0.size()], part(inputs, given, inputs.size() - given), solution, cotangents,
                      options);
  };
  return custom_gradient(solve, rule, appended(appended(y0, {times}), equation.captured()));
}
}  // namespace

Vars odeint(const OdeFunction& f, const Vars& y0, const Var& times, const OdeOptions& options, Caller caller) {
  return at_place(caller, [&] {
    if (!f) throw Error("odeint: the function is empty");
    check_arguments(y0, times, options);
    return all_or_nothing(times.tape(), &custom_gradient_op(), caller,
                          [&] { return record_odeint(f, y0, times, options); });
  });
}

Var odeint(const std::function<Var(const Var&, const Var&)>& f, const Var& y0, const Var& times,
           const OdeOptions& options, Caller caller) {
  OdeFunction listed;
  if (f) listed = [&](const Vars& y, const Var& t) { return Vars{f(y[0], t)}; };
  return odeint(listed, Vars{y0}, times, options, caller)[0];
}

}  // namespace xtape
