// Derivatives with respect to constants of the program. Bodies, rules and expansions refer to such constants as they
// refer to inputs. They copy only literals.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "played_loops.hpp"
#include "xtape/custom_gradient.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/implicit.hpp"
#include "xtape/linear_solve.hpp"
#include "xtape/odeint.hpp"
#include "xtape/scan.hpp"
#include "xtape/sparse.hpp"
#include "xtape/vmap.hpp"

using namespace xtape;
using namespace xtape::test;

namespace {
using Inside = std::function<Var(const Var&)>;

/// A way to use a function in a body. The function, and the result, are functions of vectors.
struct Body {
  const char* name;
  Var (*apply)(const Inside& step, const Var& x);
  bool solves = false;  ///< Whether a solver calls the body.
};

Var three_rows(const Var& x) {
  return stack({x, x * 0.5, -x});
}

Var last_state(const Inside& step, const Var& x, const ScanOptions& options) {
  return scan([&](const Vars& row, const Vars& states) { return std::pair(Vars{}, Vars{step(states[0]) + row[0]}); },
              {three_rows(x)}, {x}, options)
      .states[0];
}

Var by_scan(const Inside& step, const Var& x) {
  return last_state(step, x, {.axis = 0});
}
Var by_rows(const Inside& step, const Var& x) {
  const auto cell = [&](const Vars& row, const Vars&) { return std::pair(Vars{step(row[0])}, Vars{}); };
  return sum(scan(cell, {three_rows(x)}, {}, {.axis = 0}).outputs[0], {0});
}
Var by_segments(const Inside& step, const Var& x) {
  ScanOptions options{.axis = 0};
  options.checkpoint_every = {2};
  return last_state(step, x, options);
}
Var by_valid_steps(const Inside& step, const Var& x) {
  ScanOptions options{.axis = 0};
  options.valid = three_rows(x) > -10.0;
  return last_state(step, x, options);
}
Var by_checkpoint(const Inside& step, const Var& x) {
  return checkpoint([&](const Vars& v) { return Vars{step(v[0])}; }, {x})[0];
}
Var by_cond(const Inside& step, const Var& x) {
  return cond(
      sum(x) > 0, [&](const Vars& v) { return Vars{step(v[0])}; }, [&](const Vars& v) { return Vars{step(v[0]) * 2}; },
      {x})[0];
}
Var by_while_loop(const Inside& step, const Var& x) {
  return while_loop([](const Vars& s) { return s[1] < 3; },
                    [&](const Vars& s) {
                      return Vars{step(s[0]), s[1] + 1};
                    },
                    {x, sum(x) * 0}, 4)
      .states[0];
}
Var by_vmap(const Inside& step, const Var& x) {
  return sum(vmap([&](const Vars& v) { return Vars{step(v[0])}; }, {three_rows(x)})[0], {0});
}
Var by_root(const Inside& step, const Var& x) {
  RootOptions options;
  options.rtol = options.atol = 1e-12;
  options.linear.rtol = 1e-13;
  return implicit_root([&](const Var& v) { return v - 0.2 * tanh(step(v)) - x; }, x, options);
}
Var by_fixed_point(const Inside& step, const Var& x) {
  FixedPointOptions options;
  options.rtol = options.atol = 1e-13;
  options.linear.rtol = 1e-13;
  return fixed_point([&](const Var& v) { return x + 0.1 * tanh(step(v)); }, x, options);
}
Var by_system(const Inside& step, const Var& x) {
  LinearSolveOptions options;
  options.rtol = 1e-13;
  return linear_solve([&](const Var& v) { return v * (3 + tanh(step(x))); }, x, options);
}
Var by_equation(const Inside& step, const Var& x) {
  const Var times = x.tape().constant({0.0, 0.5}, Dtype::float64);
  OdeOptions options;
  options.max_steps = 20;
  return odeint([&](const Var& y, const Var&) { return 0.1 * tanh(step(y)) - y; }, x, times, options).at(1);
}
/// The step is in the rule, so only derivatives of the gradient depend on it.
Var by_own_rule(const Inside& step, const Var& x) {
  return custom_gradient([](const Vars& v) { return Vars{v[0] * 2}; },
                         [&](const Vars& v, const Vars&, const Vars& g) { return Vars{g[0] * step(v[0])}; }, {x})[0];
}

const std::vector<Body> bodies = {{"scan", by_scan},
                                  {"scan without states", by_rows},
                                  {"scan in segments", by_segments},
                                  {"scan of valid steps", by_valid_steps},
                                  {"checkpoint", by_checkpoint},
                                  {"cond", by_cond},
                                  {"while_loop", by_while_loop},
                                  {"vmap", by_vmap},
                                  {"custom_gradient", by_own_rule},
                                  {"implicit_root", by_root, true},
                                  {"fixed_point", by_fixed_point, true},
                                  {"linear_solve", by_system, true},
                                  {"odeint", by_equation, true}};

enum class Source { constant, parameter, input };

/// Returns results of `function`, which takes x [2] and w. x is an input, w is as `source` says.
std::vector<Numbers> found(const std::function<Vars(const Var& x, const Var& w)>& function, const Numbers& w,
                           Source source, bool passes = true) {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {2});
  std::vector<Feed> feeds{{x, Numbers{0.4, -0.7}}};
  Var by;
  if (source == Source::constant) by = tape.constant(w);
  if (source == Source::parameter) by = tape.parameter("w", w);
  if (source == Source::input) {
    by = tape.input("w", Shape(w.shape().begin(), w.shape().end()));
    feeds.emplace_back(by, w);
  }
  PlayerOptions options;
  if (!passes) options.passes = Passes::reference();
  return values(tape, function(x, by), feeds, options);
}

/// Checks that results are the same whether w is a constant, a parameter or an input. With `unrolled`, also those of a
/// player without passes, which plays the steps of loops one by one.
void check_sources(const std::function<Vars(const Var& x, const Var& w)>& function, const Numbers& w,
                   bool unrolled = true) {
  const std::vector<Numbers> right = found(function, w, Source::input);
  for (const Source source : {Source::constant, Source::parameter})
    for (const bool passes : {true, false}) {
      if (!passes && !unrolled) continue;
      const std::vector<Numbers> others = found(function, w, source, passes);
      for (std::size_t i = 0; i < right.size(); ++i) {
        CAPTURE(i);
        CHECK(are_close(others[i], right[i], 1e-8));
      }
    }
}

Var wave(const Var& x, const Var& w) {
  return sin(x * w) + w * 0.1;
}

const std::vector<Numbers> ranks = {Numbers(1.3), Numbers{1.3, -0.6}};
}  // namespace

TEST_CASE("constants: first and second derivatives of uses in bodies of every kind, and outside of them") {
  for (const Body& body : bodies)
    for (const Numbers& w : ranks) {
      CAPTURE(body.name);
      CAPTURE(w.dimension());
      check_sources(
          [&](const Var& x, const Var& by) {
            const Var y = sum(by * by) + sum(body.apply([&](const Var& v) { return wave(v, by); }, x));
            const Vars first = grad(y, {x, by});
            const Var mixed = grad(sum(first[0] * (x + 1)), {by})[0], second = grad(sum(first[1]), {by})[0];
            return Vars{y, first[1], jvp({y}, {by}, {ones_like(by)})[0], mixed, second, jvp({first[1]}, {by}, {by})[0]};
          },
          w, !body.solves);
    }
}

TEST_CASE("constants: uses in bodies inside of bodies") {
  for (const Body& outer : bodies)
    for (const Body& inner : bodies) {
      if (outer.solves && inner.solves) continue;
      CAPTURE(outer.name);
      CAPTURE(inner.name);
      const Numbers& w = ranks[(&outer - &bodies[0] + (&inner - &bodies[0])) % 2];
      const auto function = [&](const Var& x, const Var& by) {
        const Inside step = [&](const Var& v) { return wave(v, by); };
        const Var y = sum(by * by) + sum(outer.apply([&](const Var& v) { return inner.apply(step, v); }, x));
        return Vars{y, grad(y, {by})[0], jvp({y}, {by}, {ones_like(by)})[0]};
      };
      const std::vector<Numbers> right = found(function, w, Source::input),
                                 others = found(function, w, Source::constant);
      for (std::size_t i = 0; i < right.size(); ++i) CHECK_MESSAGE(are_close(others[i], right[i], 1e-8), i);
    }
}

TEST_CASE("constants: a constant that a body makes, used in bodies inside of it, and differentiated there") {
  const std::vector<Body> outers(bodies.begin(), bodies.begin() + 8);
  for (const Body& outer : outers)
    for (const Body& inner : bodies)
      for (const Numbers& w : ranks) {
        if (inner.solves && w.dimension() > 0) continue;
        CAPTURE(outer.name);
        CAPTURE(inner.name);
        const auto gradient = [&](const Var& x, const Var& by) {
          const Var y = sum(by * by) + sum(inner.apply([&](const Var& v) { return wave(v, by); }, x));
          return tanh(x) * sum(grad(y, {by})[0] + jvp({y}, {by}, {ones_like(by)})[0]);
        };
        const std::vector<Numbers> right =
            found([&](const Var& x,
                      const Var& by) { return Vars{outer.apply([&](const Var& v) { return gradient(v, by); }, x)}; },
                  w, Source::input);
        const std::vector<Numbers> made = found(
            [&](const Var& x, const Var&) {
              return Vars{outer.apply([&](const Var& v) { return gradient(v, x.tape().constant(w)); }, x)};
            },
            w, Source::input);
        CHECK(are_close(made[0], right[0], 1e-8));
      }
}

TEST_CASE("constants: uses three bodies deep, by each body between") {
  for (const Body& middle : bodies) {
    CAPTURE(middle.name);
    check_sources(
        [&](const Var& x, const Var& w) {
          const Inside inside = [&](const Var& v) {
            return by_checkpoint([&](const Var& u) { return wave(u, w); }, v) * w;
          };
          const Inside between = [&](const Var& v) { return middle.apply(inside, v) + w; };
          const Var y = sum(by_scan(between, x)) * w;
          return Vars{y, grad(y, {w})[0], jvp({y}, {w}, {ones_like(w)})[0]};
        },
        ranks[0], !middle.solves);
  }
}

TEST_CASE("constants: integers and flags of rank 0 in bodies") {
  for (const Body& body : bodies) {
    CAPTURE(body.name);
    std::vector<std::vector<Numbers>> results;
    for (const bool constant : {true, false}) {
      Tape tape(Dtype::float64);
      const Var x = tape.input("x", {2});
      const xt::xarray<std::int64_t> one(1);
      const xt::xarray<bool> yes(true);
      std::vector<Feed> feeds{{x, Numbers{0.4, -0.7}}};
      const Var index = constant ? tape.constant(one) : tape.input("i", {}, Dtype::int64);
      const Var flag = constant ? tape.constant(yes) : tape.input("f", {}, Dtype::boolean);
      if (!constant) feeds.insert(feeds.end(), {{index, one}, {flag, yes}});
      const Var y = sum(body.apply(
          [&](const Var& v) { return where(flag, sin(v) * take(v, index) * index, v) + cast(index, Dtype::float64); },
          x));
      results.push_back(values(tape, {y, grad(y, {x})[0]}, feeds));
    }
    for (std::size_t i = 0; i < 2; ++i) CHECK(are_close(results[0][i], results[1][i]));
  }
}

TEST_CASE("constants: exponents, also those that literals replace by other ops") {
  for (const double exponent : {2.0, 1.0, 0.5, -0.5, 0.0, 3.0})
    for (const Body& body : {Body{"none", nullptr}, bodies[0], bodies[4], bodies[7]}) {
      CAPTURE(exponent);
      CAPTURE(body.name);
      check_sources(
          [&](const Var& x, const Var& w) {
            const Inside power = [&](const Var& v) { return pow(square(v) + 0.5, w); };
            const Var y = w + sum(body.apply == nullptr ? power(x) : body.apply(power, x));
            const Vars first = grad(y, {x, w});
            return Vars{y, first[1], jvp({y}, {w}, {ones_like(w)})[0], grad(sum(first[0]), {w})[0],
                        grad(first[1], {w})[0]};
          },
          Numbers(exponent));
    }
}

TEST_CASE("constants: numbers in the patterns of rules") {
  // The first gradient does not name w, so that rules apply.
  const auto second_by = [](const Var& y, const Var& x, const Var& w) {
    const Var total = sum(y * sin(iota(y.tape(), y.shape(), -1, Dtype::float64) + 1)), first = grad(total, {x})[0];
    return Vars{y, grad(total, {w})[0], grad(sum(first * (x + 1)) + w, {w})[0], jvp({first}, {w}, {ones_like(w)})[0]};
  };
  check_sources(
      [&](const Var& x, const Var& eps) {
        const Var rows = three_rows(x);
        return second_by(rows / sqrt(mean(rows * rows, {-1}, true) + eps), x, eps);  // rms_norm
      },
      Numbers(0.3));
  check_sources(
      [&](const Var& x, const Var& eps) {
        const Var rows = three_rows(x), middle = rows - mean(rows, {-1}, true);
        return second_by(middle / sqrt(mean(square(middle), {-1}, true) + eps), x, eps);  // layer_norm
      },
      Numbers(0.3));
  check_sources(
      [&](const Var& x, const Var& scale) {
        const Var rows = reshape(three_rows(x), {1, 3, 1, 2});
        const Var scores = einsum("bqhd,bkhd->bhqk", {rows, sin(rows)}) / scale;
        return second_by(einsum("bhqk,bkhd->bqhd", {softmax(scores, -1), cos(rows)}), x, scale);  // attention
      },
      Numbers(1.4));
  check_sources([&](const Var& x, const Var& slope) { return second_by(where(x > 0, x, x * slope), x, slope); },
                Numbers(0.01));
}

TEST_CASE("constants: dense and sparse Jacobians and Hessians") {
  const Numbers w{0.0, 1.3};
  check_sources(
      [](const Var& x, const Var& by) {
        const Var y = by_scan([&](const Var& v) { return wave(v, by); }, x) +
                      einsum("i,ij->j", {by * 2, expand_dims(by, 1) * sin(x)});
        const auto whole = [](const SparseMatrix& found) { return sum(found.values); };
        return Vars{jacobian(y, by), jacobian(y, by, {.mode = JacobianMode::forward}), hessian(sum(y), by),
                    whole(sparse_jacobian(y, by)), whole(sparse_hessian(sum(y * y), by))};
      },
      w);
}

TEST_CASE("constants: vmap over a constant and over an input with a constant that is not mapped") {
  for (const bool maps : {true, false})
    check_sources(
        [&](const Var& x, const Var& w) {
          const VmapOptions options{.in_axes = {0, maps ? std::optional<std::int64_t>(0) : std::nullopt}};
          const Var y = vmap([&](const Vars& v) { return Vars{wave(v[0], v[1]) * sum(w)}; }, {x, w}, options)[0];
          return Vars{y, grad(sum(y), {w})[0], jvp({y}, {w}, {w})[0], grad(sum(grad(sum(y), {x})[0]), {w})[0]};
        },
        ranks[maps ? 1 : 0]);
}

namespace {
std::size_t calls_of(const Tape& tape, const char* op) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < tape.size(); ++i) count += tape.node(i).op->name == op ? 1 : 0;
  return count;
}
}  // namespace

TEST_CASE("constants: a body has its own literals, and refers to constants outside") {
  for (const Body& body : {bodies[0], bodies[4]}) {
    CAPTURE(body.name);
    Tape tape(Dtype::float64);
    const Var x = tape.input("x", {2}), w = tape.constant(1.5);
    body.apply([&](const Var& v) { return v * 0.5 + v * w * tape.constant(3.0); }, x);
    std::size_t found = 0;
    for (std::size_t i = 0; i < tape.size(); ++i) {
      const Node& node = tape.node(i);
      if (node.body == nullptr) continue;
      ++found;
      CHECK(std::ranges::count(node.inputs, w.id()) == 1);
      CHECK(calls_of(*node.body, "constant") == 2);
    }
    CHECK(found == 1);
    CHECK(calls_of(tape, "constant") == (body.apply == by_scan ? 2 : 1));  // by_scan: and the 0.5 of three_rows
  }
}

TEST_CASE("constants: rules apply in gradients to literals, and in players also to constants") {
  for (const bool literal : {true, false}) {
    CAPTURE(literal);
    Tape tape(Dtype::float64);
    const Var x = tape.input("x", {3, 4});
    const Var squares = mean(x * x, {-1}, true), w = tape.constant(0.3);
    const Var y = x / sqrt(literal ? squares + 0.3 : squares + w);
    Player player(tape, {y});
    std::ostringstream plan;
    plan << player.plan();
    CHECK(plan.str().find("rms_norm") != std::string::npos);
    grad(sum(y * sin(x)), {x});
    CHECK(calls_of(tape, "rms_norm_grad") == (literal ? 1 : 0));
  }
}
