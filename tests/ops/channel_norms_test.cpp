#include <doctest/doctest.h>

#include "golden.hpp"
#include "played.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

using namespace xtape;

TEST_CASE("op group_norm: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "group_norm", 1e-10, 1e-4);
}
TEST_CASE("op instance_norm: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "instance_norm", 1e-10, 1e-4);
}
TEST_CASE("op batch_norm: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "batch_norm", 1e-10, 1e-4);
}

TEST_CASE("op group_norm: gradients") {
  check_gradient([](const Vars& v) { return group_norm(v[0], 2, v[1], v[2], 0.1); },
                 {numbers({2, 4, 3}, 1), numbers({4}, 2), numbers({4}, 3)});
}
TEST_CASE("op instance_norm: gradients") {
  check_gradient([](const Vars& v) { return instance_norm(v[0], v[1], {}, 0.1); },
                 {numbers({2, 2, 3}, 1), numbers({2}, 2)});
}
TEST_CASE("op batch_norm: gradients, also with a bias alone") {
  check_gradient([](const Vars& v) { return batch_norm(v[0], v[1], square(v[2]), {}, v[3], 0.1); },
                 {numbers({2, 2, 3}, 1), numbers({2}, 2), numbers({2}, 3), numbers({2}, 4)});
}
TEST_CASE("op group_norm: refuses what does not fit") {
  Tape tape;
  const Var x = tape.input("x", {2, 4, 3});
  CHECK_THROWS_WITH_AS(group_norm(x, 3), "group_norm: groups must divide the channels of x, (2, 4, 3), got 3",
                       ShapeError);
  CHECK_THROWS_AS(group_norm(x, 0), ShapeError);
  CHECK_THROWS_AS(instance_norm(x, tape.input("w", {3})), ShapeError);
  CHECK_THROWS_AS(instance_norm(tape.input("y", {3})), ShapeError);
  CHECK_THROWS_WITH_AS(batch_norm(x, tape.input("m", {4}), tape.input("v", {1})),
                       "batch_norm: variance must have one number for each of the 4 channels of x, (2, 4, 3), got (1,)",
                       ShapeError);
}

TEST_CASE("op instance_norm: of no examples, channels or elements") {
  for (const Shape& shape : {Shape{0, 4, 3}, Shape{2, 0, 3}, Shape{2, 4, 0}})
    CHECK(shape_of(played_one([](const Vars& v) { return instance_norm(v[0]); }, {numbers(shape)})) == shape);
}
