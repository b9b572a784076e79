// What plays of while_loop and cond compute and keep, and their errors.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "folders.hpp"
#include "played_loops.hpp"

using namespace xtape;
using namespace xtape::test;

TEST_CASE("while_loop: states without elements") {
  const Function empty = [](const Vars& v) {
    const Looped loop = while_loop([](const Vars& s) { return s[1] < 3; },
                                   [](const Vars& s) {
                                     return Vars{s[0] * 2, s[1] + 1};
                                   },
                                   {v[0], v[1]}, 5);
    return Vars{loop.states[0], loop.states[1], grad(sum(loop.states[0]) + loop.states[1], {v[0]})[0]};
  };
  const std::vector<Numbers> found = everywhere(empty, {xt::zeros<double>({0, 4}), Numbers(0.5)});
  CHECK(found[0].shape() == Numbers::shape_type{0, 4});
  CHECK(found[1]() == 3.5);
}

TEST_CASE("loops: steps that do not take place are not played, in gradients either") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  const Looped loop = while_loop([](const Vars& s) { return s[0] < 100; },
                                 [](const Vars& s) { return Vars{counted(s[0]) * 2}; }, {x}, 50);
  const Var slope = grad(loop.states[0], {x})[0];
  PlayerOptions options;
  options.passes.fold = false;
  Player forward(tape, {loop.states[0]}, options), both(tape, {slope}, options);
  for (const auto& [start, steps] : {std::pair{100.0, 0}, {50.0, 1}, {1.0, 7}, {60.0, 1}}) {
    CHECK(runs_of(forward, {{x, Numbers(start)}}) == steps);
    const int of_both = runs_of(both, {{x, Numbers(start)}});
    CHECK(of_both >= steps);
    CHECK(of_both <= 2 * steps);
    CHECK(both.view(slope).to<double>()() == std::pow(2.0, steps));
  }

  // A step that would fail.
  const Looped guarded = while_loop([](const Vars& s) { return s[0] < 10; },
                                    [](const Vars& s) { return Vars{watch(s[0], s[0] < 10) + 1}; }, {x}, 50);
  const std::vector<Numbers> found =
      values(tape, {guarded.states[0], grad(guarded.states[0], {x})[0]}, {{x, Numbers(0.5)}});
  CHECK(found[0]() == 10.5);
  CHECK(found[1]() == 1);
  const Looped failing = while_loop([](const Vars& s) { return s[0] < 10; },
                                    [](const Vars& s) { return Vars{watch(s[0], s[0] < 9) + 1}; }, {x}, 50);
  CHECK_THROWS_WITH_AS(values(tape, {failing.states[0]}, {{x, Numbers(0.5)}}), doctest::Contains("watch"), Error);
}

TEST_CASE("loops: values of one play do not reach a play with fewer steps") {
  Tape tape;
  const Var y = tape.input("y", {2}, Dtype::float64), w = tape.input("w", {2, 2}, Dtype::float64);
  const Var b = tape.input("b", {2}, Dtype::float64);
  const Looped loop = shrunk(y, w, b, 40);
  const Vars gradients = grad(sum(loop.states[0]) + loop.states[1], {y, w, b});
  Vars outputs = gradients;
  const Var of_gradients = sum(sin(gradients[0])) + sum(square(gradients[1]));
  for (const Var& second : grad(of_gradients, {y, w, b})) outputs.push_back(second);
  Player often(tape, outputs);
  for (const double scale : {30.0, 0.9, 0.1, 2.0, 0.5}) {
    const std::vector<Feed> feeds{{y, Numbers{scale, -scale}}, {w, Numbers(turn(0.3) * scale)}, {b, Numbers{0.1, 0.0}}};
    often.play(feeds);
    Player once(tape, outputs);
    once.play(feeds);
    for (const Var& output : outputs) {
      const Numbers found = often.view(output).to<double>(), truth = once.view(output).to<double>();
      CHECK(xt::all(xt::isfinite(found)));
      CHECK(found == truth);
    }
  }
}

TEST_CASE("while_loop: random ops draw new numbers at every step") {
  const Function walk = [](const Vars& v) {
    const Looped loop = while_loop([](const Vars& s) { return s[0] < 3; },
                                   [&](const Vars& s) {
                                     const Var draw = uniform(s[0].tape(), {}, 0, 1, Dtype::float64);
                                     return Vars{s[0] + draw * v[0], s[1] + draw, s[2] + square(draw)};
                                   },
                                   {v[0] * 0, v[0] * 0, v[0] * 0}, 60);
    return Vars{loop.states[0], loop.states[1], loop.states[2], cast(loop.steps, Dtype::float64),
                grad(loop.states[0], {v[0]})[0]};
  };
  const std::vector<Numbers> found = everywhere(walk, {Numbers(1.0)});
  const double steps = found[3]();
  CHECK(steps > 3);
  CHECK(found[0]() >= 3);
  CHECK(found[0]() == doctest::Approx(found[1]()));
  CHECK(found[4]() == doctest::Approx(found[1]()));                    // the gradient repeats the draws
  CHECK(found[2]() / steps > std::pow(found[1]() / steps, 2) + 1e-3);  // they differ
}

TEST_CASE("while_loop: values for gradients take memory only where there is a gradient") {
  Tape tape;
  const Var x = tape.input("x", {100}, Dtype::float64);
  const auto bytes = [&](std::int64_t max_steps, bool with_gradient) {
    const Looped loop = while_loop([](const Vars& s) { return s[1] < 5; },
                                   [](const Vars& s) {
                                     return Vars{sin(s[0]), s[1] + 1};
                                   },
                                   {x, zeros(tape, {}, Dtype::int64)}, max_steps);
    Vars outputs{loop.states[0]};
    if (with_gradient) outputs.push_back(grad(sum(loop.states[0]), {x})[0]);
    return Player(tape, outputs).plan().peak_bytes();
  };
  CHECK(bytes(1000, false) == bytes(10, false));
  CHECK(bytes(1000, true) > 990 * 100 * sizeof(double));
  CHECK(bytes(10, true) < 100 * 100 * sizeof(double));
}

TEST_CASE("while_loop: plans within a memory budget") {
  Tape tape;
  const Var y = tape.input("y", {2}, Dtype::float64), w = tape.input("w", {2, 2}, Dtype::float64);
  Var x = y;
  for (int i = 0; i < 3; ++i) x = shrunk(x * 3, w, y * 0 + 0.1, 30).states[0];
  const Vars gradients = grad(sum(x), {y, w});
  const std::vector<Feed> feeds{{y, Numbers{2.0, 0.5}}, {w, turn(0.4)}};
  const std::vector<Numbers> truth = values(tape, gradients, feeds);
  PlayerOptions options;
  options.memory = memory_curve(tape, gradients).back().bytes + 4096;
  const std::vector<Numbers> within = values(tape, gradients, feeds, options);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(within[i] == truth[i]);
}

TEST_CASE("loops: saved tapes") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  const Looped loop = root(x);
  const auto sine = [](const Vars& v) { return Vars{sin(v[0])}; };
  const Var y = cond(
      x < 3, sine, [](const Vars& v) { return v; }, loop.states)[0];
  const test::Folder folder;
  tape.save(folder / "tape", {{"y", y}});
  const SavedTape saved = Tape::load(folder / "tape");
  const Var again = saved.outputs.at("y"), given = saved.inputs.at("x");
  for (const double a : {2.0, 7.0}) {
    const Numbers found = values(saved.tape, {grad(again, {given})[0]}, {{given, Numbers(a)}})[0];
    CHECK(found() == values(tape, {grad(y, {x})[0]}, {{x, Numbers(a)}})[0]());
  }
}

TEST_CASE("loops: narrow states stay narrow") {
  for (const Dtype half : {Dtype::bfloat16, Dtype::float16}) {
    Tape tape;
    const Var x = tape.input("x", {2}, Dtype::float32);
    const Looped loop = while_loop([](const Vars& s) { return sum(cast(s[1], Dtype::int64)) < 6; },
                                   [](const Vars& s) {
                                     return Vars{s[0] * 2, cast(s[1] + 1, Dtype::int8)};
                                   },
                                   {cast(x, half), zeros(tape, {2}, Dtype::int8)}, 5);
    CHECK(loop.states[0].dtype() == half);
    CHECK(loop.states[1].dtype() == Dtype::int8);
    for (const bool reference : {false, true}) {
      PlayerOptions options;
      if (reference) options.passes = Passes::reference();
      const std::vector<Numbers> found = values(tape, loop.states, {{x, xt::xarray<float>{1, 3}}}, options);
      CHECK(found[0] == Numbers{8, 24});
      CHECK(found[1] == Numbers{3, 3});
    }
  }
}

TEST_CASE("loops: errors leave the tape as it was") {
  Tape tape, other;
  const Var x = tape.input("x", {2}, Dtype::float64), y = other.input("y", {2}, Dtype::float64);
  const Var flag = tape.input("flag", {}, Dtype::boolean);
  const std::size_t size = tape.size();
  const auto small = [](const Vars& s) { return sum(s[0]) < 3; };
  const auto doubled = [](const Vars& s) { return Vars{s[0] * 2}; };
  const auto is_error = [&](const auto& function, const char* message) {
    CHECK_THROWS_WITH_AS(function(), doctest::Contains(message), Error);
    CHECK(tape.size() == size);
  };
  is_error([&] { while_loop({}, doubled, {x}, 3); }, "while_loop: the condition or the body is empty");
  is_error([&] { while_loop(small, {}, {x}, 3); }, "while_loop: the condition or the body is empty");
  is_error([&] { while_loop(small, doubled, {}, 3); }, "while_loop: needs at least one state");
  is_error([&] { while_loop(small, doubled, {x}, -1); }, "while_loop: max_steps must not be negative, got -1");
  is_error([&] { while_loop(small, doubled, {x, y}, 3); }, "while_loop: a state is of another tape");
  is_error([&] { while_loop([](const Vars& s) { return s[0] < 3; }, doubled, {x}, 3); },
           "while_loop: the condition must be one bool, got bool (2,)");
  is_error([&] { while_loop([](const Vars& s) { return sum(s[0]); }, doubled, {x}, 3); },
           "while_loop: the condition must be one bool, got float64 ()");
  is_error([&] { while_loop([&](const Vars&) { return sum(y) < 3; }, doubled, {x}, 3); },
           "while_loop: the condition is of another tape");
  is_error(
      [&] {
        while_loop(
            small,
            [](const Vars& s) {
              return Vars{s[0], s[0]};
            },
            {x}, 3);
      },
      "while_loop: the body must return 1 states, it returned 2");
  is_error(
      [&] {
        while_loop(
            small, [](const Vars& s) { return Vars{sum(s[0])}; }, {x}, 3);
      },
      "while_loop: next state 0 must be float64 (2,) like the state, the body returned float64 ()");
  is_error(
      [&] {
        while_loop(
            small, [&](const Vars&) { return Vars{y}; }, {x}, 3);
      },
      "while_loop: the body returned a var of another tape");
  is_error(
      [&] {
        while_loop(
            small, [](const Vars&) -> Vars { throw Error("mine"); }, {x}, 3);
      },
      "mine");
  is_error(
      [&] {
        while_loop(
            small, [](const Vars& s) { return Vars{grad(sum(s[0] * s[0]), {s[0]})[0]}; }, {x},
            std::numeric_limits<std::int64_t>::max());
      },
      "");
  is_error([&] { cond(flag, {}, doubled, {x}); }, "cond: a branch is empty");
  is_error([&] { cond(x, doubled, doubled, {x}); }, "cond: the predicate must be one bool, got float64 (2,)");
  is_error([&] { cond(flag, doubled, doubled, {y}); }, "cond: an input is of another tape");
  is_error([&] { cond(flag, [](const Vars&) { return Vars{}; }, doubled, {x}); }, "cond: a branch gives no result");
  is_error([&] { cond(flag, doubled, [](const Vars& v) { return Vars{sum(v[0])}; }, {x}); },
           "cond: both branches must give results of the same types, got float64 (2,) if true and float64 () if false");
  is_error([&] { cond(flag, doubled, [&](const Vars&) { return Vars{y}; }, {x}); },
           "cond: a branch returned a var of another tape");
  try {
    while_loop(
        small,
        [](const Vars& s) {
          return Vars{matmul(s[0], s[0]) * s[0] + concat({s[0], s[0]})};
        },
        {x}, 3);
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("loop_plays_test.cpp") != std::string::npos);
  }
}
