#include "golden.hpp"
#include "indexed.hpp"

using namespace xtape;

namespace {
const char* const golden_file = "ops_indexing.json";
}

TEST_CASE("op roll: gives PyTorch's values and gradients; batches") {
  check_golden(golden_file, "roll");
  check_gradient([](const Vars& v) { return roll(v[0], {1, -4}, {0, 1}); }, {numbers({2, 3})});
  check_vmap([](const Vars& v) { return roll(v[0], {2}); }, {numbers({2, 3, 2})});
  Tape tape;
  const Var x = tape.input("x", {0, 2});
  CHECK(roll(x, {1}, {0}).shape() == Shape{0, 2});
  CHECK_THROWS_WITH_AS(roll(x, {1, 2}),
                       "roll: shifts (1, 2) must have one number for each axis of (), or one without axes", ShapeError);
  CHECK_THROWS_AS(roll(x, {1}, {2}), ShapeError);
}
TEST_CASE("op repeat_interleave: gives PyTorch's values and gradients; batches") {
  check_golden(golden_file, "repeat_interleave");
  check_gradient([](const Vars& v) { return repeat_interleave(v[0], 3, -1); }, {numbers({2, 3})});
  check_vmap([](const Vars& v) { return repeat_interleave(v[0], 2, 0); }, {numbers({2, 3, 2})});
  Tape tape;
  CHECK_THROWS_AS(repeat_interleave(tape.input("x", {2}), -1, 0), ShapeError);
}
TEST_CASE("op reflection_pad: gives PyTorch's values and gradients; batches") {
  check_golden(golden_file, "reflection_pad");
  check_gradient([](const Vars& v) { return pad(v[0], {0, 2}, {1, 1}, "reflect"); }, {numbers({2, 3})});
  check_vmap([](const Vars& v) { return pad(v[0], {2, 0}, {1, 1}, "reflect"); }, {numbers({2, 3, 2})});
  Tape tape;
  const Var x = tape.input("x", {3});
  CHECK_THROWS_WITH_AS(pad(x, {3}, {0}, "reflect"),
                       "reflection_pad: axis 0 of (3,) is too short for 3 more elements at an end", ShapeError);
  CHECK_THROWS_AS(pad(x, {-1}, {0}, "reflect"), ShapeError);
  CHECK_THROWS_AS(pad(x, {1, 1}, {0, 0}, "reflect"), ShapeError);
}
TEST_CASE("op replication_pad: gives PyTorch's values and gradients; batches") {
  check_golden(golden_file, "replication_pad");
  check_gradient([](const Vars& v) { return pad(v[0], {0, 4}, {1, 1}, "replicate"); }, {numbers({2, 3})});
  check_vmap([](const Vars& v) { return pad(v[0], {2, 0}, {1, 1}, "edge"); }, {numbers({2, 3, 2})});
  Tape tape;
  CHECK_THROWS_AS(pad(tape.input("x", {0}), {1}, {0}, "edge"), ShapeError);
}
TEST_CASE("op circular_pad: gives PyTorch's values and gradients; batches") {
  check_golden(golden_file, "circular_pad");
  check_gradient([](const Vars& v) { return pad(v[0], {0, 3}, {1, 1}, "circular"); }, {numbers({2, 3})});
  check_vmap([](const Vars& v) { return pad(v[0], {2, 0}, {1, 1}, "wrap"); }, {numbers({2, 3, 2})});
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK_THROWS_AS(pad(x, {3}, {0}, "wrap"), ShapeError);
  CHECK_THROWS_AS(pad(x, {1}, {0}, "mirror"), Error);
}

TEST_CASE("meshgrid broadcasts each array to the grid, of rows or of x and y") {
  Tape tape;
  const Var a = tape.constant(Doubles{1, 2}), b = tape.constant(Doubles{3, 4, 5}), c = tape.constant(Doubles{6});
  const Vars rows = meshgrid({a, b, c}), xy = meshgrid({a, b, c}, "xy");
  for (const Var& each : rows) CHECK(each.shape() == Shape{2, 3, 1});
  for (const Var& each : xy) CHECK(each.shape() == Shape{3, 2, 1});
  CHECK(value<double>(squeeze(rows[0])) == Doubles{{1, 1, 1}, {2, 2, 2}});
  CHECK(value<double>(squeeze(rows[1])) == Doubles{{3, 4, 5}, {3, 4, 5}});
  CHECK(value<double>(squeeze(xy[0])) == Doubles{{1, 2}, {1, 2}, {1, 2}});
  CHECK(value<double>(squeeze(xy[1])) == Doubles{{3, 3}, {4, 4}, {5, 5}});
  CHECK(meshgrid({}).empty());
  const std::size_t before = tape.size();
  CHECK_THROWS_AS(meshgrid({a, rows[0]}), ShapeError);
  CHECK_THROWS_AS(meshgrid({a, b}, "yx"), Error);
  CHECK(tape.size() == before);
}
