#include "golden.hpp"
#include "indexed.hpp"

using namespace xtape;

namespace {
const char* const scatter_file = "ops_indexing.json";
}

TEST_CASE("op take_along_axis: gives PyTorch's values and gradients; batches") {
  check_golden(scatter_file, "take_along_axis");
  const Doubles rows = as_numbers({1, -1, 0, 2, 2, -3, 0, 1}, {2, 4, 1});
  check_gradient(
      [&](const Vars& v) {
        return take_along_axis(v[0], index(v[0], {1, -1, 1}, {1, 3}), -1);
      },
      {numbers({2, 3})});
  check_vmap([](const Vars& v) { return take_along_axis(v[0], cast(v[1], Dtype::int64), 0); },
             {numbers({2, 3, 5}), rows});
  Tape tape;
  const Var x = tape.input("x", {3, 2}), i = tape.input("i", {2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(take_along_axis(x, i, 0),
                       "take_along_axis: indices of shape (2,) must have as many axes as x, (3, 2)", ShapeError);
}
TEST_CASE("op index_select: gives PyTorch's values and gradients; batches") {
  check_golden(scatter_file, "index_select");
  check_gradient([&](const Vars& v) { return index_select(v[0], 1, index(v[0], {1, -1, 1})); }, {numbers({2, 3})});
  check_vmap([](const Vars& v) { return index_select(v[0], 1, cast(v[1], Dtype::int64)); },
             {numbers({2, 3, 5}), as_numbers({1, -1, 0, 2}, {2, 2})});
  Tape tape;
  const Var x = tape.input("x", {3, 2}), i = tape.input("i", {2, 2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(index_select(x, 0, i), "index_select: indices of shape (2, 2) must have one axis", ShapeError);
}
TEST_CASE("op gather_nd: gives PyTorch's values and gradients; batches") {
  check_golden(scatter_file, "gather_nd");
  check_gradient(
      [&](const Vars& v) {
        return gather_nd(v[0], index(v[0], {1, 0, -1, -1, 1, 0}, {3, 2}));
      },
      {numbers({2, 3, 2})});
  check_vmap([](const Vars& v) { return gather_nd(v[0], cast(v[1], Dtype::int64)); },
             {numbers({2, 3, 5}), as_numbers({1, -1, 0, 2}, {2, 1, 2})});
  Tape tape;
  const Var x = tape.input("x", {3, 2});
  CHECK_THROWS_AS(gather_nd(x, tape.input("i", {2, 3}, Dtype::int64)), ShapeError);
  CHECK_THROWS_AS(gather_nd(x, tape.input("j", {2, 0}, Dtype::int64)), ShapeError);
  CHECK_THROWS_AS(gather_nd(x, tape.input("k", {}, Dtype::int64)), ShapeError);
}
TEST_CASE("op scatter_nd: gives PyTorch's values and gradients; batches") {
  check_golden(scatter_file, "scatter_nd", 1e-11);
  const Doubles x = numbers({2, 3, 2}), part = numbers({4, 2}, 1);
  for (const char* reduce : {"set", "sum", "prod", "mean", "amax"})
    check_gradient(
        [&](const Vars& v) {
          return scatter_nd(v[0], index(v[0], {1, 0, 0, -1, 1, 0, 0, 0}, {4, 2}), v[1], reduce);
        },
        {x, part});
  check_vmap([](const Vars& v) { return scatter_nd(v[0], cast(v[1], Dtype::int64), v[2], "amax"); },
             {numbers({2, 3, 5}), as_numbers({1, -1, 0, 2}, {2, 2, 1}), numbers({2, 2, 5}, 1)});
}
TEST_CASE("op scatter_reduce: gives PyTorch's values and gradients; batches") {
  check_golden(scatter_file, "scatter_reduce", 1e-11);
  const Doubles x = numbers({2, 3}), part = numbers({2, 5}, 1);
  const Integers rows{1, 0, -1, 2, 1, 0, 0, 0, 1, 1};
  for (const char* reduce : {"set", "sum", "prod", "mean", "amax", "amin"})
    for (const bool own : {true, false})
      check_gradient(
          [&](const Vars& v) {
            return scatter_reduce(v[0], 1, index(v[0], rows, {2, 5}), v[1], reduce, own);
          },
          {x, part});
  check_vmap([](const Vars& v) { return scatter(v[0], 0, cast(v[1], Dtype::int64), v[2]); },
             {numbers({2, 3, 5}), as_numbers({1, -1, 0, 2, 1, 0, 0, 0}, {2, 2, 2}), numbers({2, 2, 2}, 1)});
}
TEST_CASE("op scatter_reduce: an index out of range is named with the op") {
  Tape tape;
  const Var x = tape.input("x", {3, 2}), i = tape.input("i", {2, 2}, Dtype::int64), part = tape.input("part", {2, 2});
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = scatter(x, 0, i, part);
  Player player(tape, {y});
  const xt::xarray<float> values = xt::ones<float>({3, 2}), parts = xt::ones<float>({2, 2});
  CHECK_THROWS_WITH(
      player.play({{x, values}, {i, xt::xarray<std::int64_t>{{0, 1}, {2, 3}}}, {part, parts}}),
      (to_string(at) + ": scatter_reduce: index 3 (at flat position 3) is out of range: the axis has size 3").c_str());
  CHECK_THROWS_WITH_AS(
      scatter(x, 0, tape.input("j", {2, 3}, Dtype::int64), part),
      "scatter_reduce: indices of shape (2, 3) must have the axes of x, (3, 2), none longer but axis 0", ShapeError);
  CHECK_THROWS_AS(scatter_reduce(x, 0, i, part, "add"), Error);
  CHECK_THROWS_AS(scatter(x, 0, i, x), ShapeError);
}
TEST_CASE("gather, scatter_add and index_add take PyTorch's order of arguments") {
  Tape tape;
  const Var x = tape.constant(Doubles{{1, 2}, {3, 4}}), rows = index(x, {1, 0, 1, 1}, {2, 2}), row = index(x, {1});
  CHECK(value<double>(gather(x, 0, rows)) == Doubles{{3, 2}, {3, 4}});
  CHECK(value<double>(scatter_add(x, 0, rows, x)) == Doubles{{1, 4}, {7, 8}});
  CHECK(value<double>(index_add(x, 0, row, tape.constant(Doubles{{10, 20}}))) == Doubles{{1, 2}, {13, 24}});
}
