#include <algorithm>
#include <limits>

#include "indexed.hpp"
#include "xtape/op/op.hpp"

using namespace xtape;

namespace {
const std::vector<std::string> reductions{"set", "prod", "amax", "amin"};

Var reduced(const Argument& x, const Var& indices, const Var& part, const std::string& reduce) {
  return apply(builtin_ops().at("index_reduce"), {x, indices, part}, {{"reduce", reduce}}, x.caller())[0];
}
Var checked(const Argument& indices, std::int64_t size, bool wrap = true) {
  return apply(builtin_ops().at("checked_indices"), {indices}, {{"size", size}, {"wrap", wrap}}, indices.caller())[0];
}
double combined(const std::string& reduce, double a, double b) {
  return reduce == "set" ? b : reduce == "prod" ? a * b : reduce == "amax" ? std::max(a, b) : std::min(a, b);
}
}  // namespace

TEST_CASE("op index_reduce: slices are combined in order, as a loop does") {
  const Integers rows{3, 0, 3, 1, 3, 0};
  for (const std::string& reduce : reductions)
    for (const Shape& rest : {Shape{}, Shape{5}, Shape{2, 700}}) {
      Shape of_x{4}, of_part{6};
      for (const std::int64_t size : rest) of_x.push_back(size), of_part.push_back(size);
      const Doubles x = numbers(of_x), part = numbers(of_part, 1);
      Doubles wanted = x;
      const std::size_t slice = x.size() / 4;
      for (std::size_t p = 0; p < rows.size(); ++p)
        for (std::size_t i = 0; i < slice; ++i) {
          double& at = wanted.data()[static_cast<std::size_t>(rows[p]) * slice + i];
          at = combined(reduce, at, part.data()[p * slice + i]);
        }
      const Doubles y =
          played_one([&](const Vars& v) { return reduced(v[0], index(v[0], rows), v[1], reduce); }, {x, part});
      CHECK(near(y, wanted, 1e-14));
    }
}

TEST_CASE("op index_reduce: first and second gradients, also where elements are overwritten or 0") {
  const Integers rows{2, 0, 2, 0, 0};
  Doubles x = numbers({3, 2}), part = numbers({5, 2}, 1);
  for (const std::string& reduce : reductions)
    check_gradient([&](const Vars& v) { return reduced(v[0], index(v[0], rows), v[1], reduce); }, {x, part});
  x(0, 0) = part(1, 0) = part(0, 1) = x(1, 1) = 0;
  check_gradient([&](const Vars& v) { return reduced(v[0], index(v[0], rows), v[1], "prod"); }, {x, part});
}

TEST_CASE("op scatter_elements: elements are combined along any axis, in order, as loops do") {
  const Doubles x = numbers({2, 4, 3});
  for (const std::int64_t axis : {0, 1, 2, -2}) {
    Shape picked{2, 4, 3};
    const std::size_t at = normal_axis(axis, 3);
    picked[at] = 5;
    const Doubles part = numbers(picked, 1);
    const std::int64_t size = shape_of(x)[at];
    Integers rows;
    for (std::int64_t i = 0; i < count_of(picked); ++i) rows.push_back(i * i % 7 % size);
    for (const std::string& reduce : reductions) {
      Doubles wanted = x;
      std::size_t next = 0;
      for_each_index(picked, [&](const Shape& p) {
        Shape to = p;
        to[at] = rows[next];
        const auto flat = static_cast<std::size_t>((to[0] * 4 + to[1]) * 3 + to[2]);
        wanted.data()[flat] = combined(reduce, wanted.data()[flat], part.data()[next++]);
      });
      const auto function = [&](const Vars& v) {
        return apply(builtin_ops().at("scatter_elements"), {v[0], index(v[0], rows, picked), v[1]},
                     {{"reduce", reduce}, {"axis", axis}})[0];
      };
      CHECK(near(played_one(function, {x, part}), wanted, 1e-14));
      if (axis == 1) check_gradient(function, {x, part});
    }
  }
  Tape tape;
  const Var y = tape.input("y", {3, 2}), i = tape.input("i", {2, 3}, Dtype::int64);
  CHECK_THROWS_AS(apply(builtin_ops().at("scatter_elements"), {y, i, y}, {{"reduce", std::string("set")}}), ShapeError);
  CHECK_THROWS_AS(apply(builtin_ops().at("scatter_elements"), {y, i, y},
                        {{"reduce", std::string("set")}, {"axis", std::int64_t{2}}}),
                  ShapeError);
}

TEST_CASE("op index_reduce: tangents, and batches of every operand") {
  const Doubles x = numbers({3, 4, 2}), part = numbers({3, 5, 2}, 1);
  const Doubles rows = as_numbers({1, 3, 1, 0, 1, 2, 2, 2, 0, 3, 3, 0, 3, 0, 3}, {3, 5});
  for (const std::string& reduce : reductions) {
    check_vmap([&](const Vars& v) { return reduced(v[0], cast(v[1], Dtype::int64), v[2], reduce); }, {x, rows, part});
    check_jvp(
        [&](const Vars& v) {
          return reduced(v[0], index(v[0], {1, 0, 1}), v[1], reduce);
        },
        {x, numbers({3, 4, 2}, 2)}, {numbers({3, 4, 2}, 3), numbers({3, 4, 2}, 4)});
  }
}

TEST_CASE("op index_reduce: bool and integers; no indices, no elements, NaN") {
  Tape tape;
  const Var rows = index(tape.constant(0.0, Dtype::float64), {1, 1}, {}, Dtype::int32);
  const Var flags = tape.constant(xt::xarray<bool>{true, true, false});
  CHECK(value<bool>(reduced(flags, rows, tape.constant(xt::xarray<bool>{true, false}), "set")) ==
        xt::xarray<bool>{true, false, false});
  CHECK_THROWS_WITH_AS(reduced(flags, rows, flags, "amax"),
                       "index_reduce: cannot reduce bool arrays: cast them to numbers", DtypeError);
  const Var counts = tape.constant(xt::xarray<std::int32_t>{5, 1 << 30, -2});
  CHECK(value<std::int32_t>(reduced(counts, rows, tape.constant(xt::xarray<std::int32_t>{4, 3}), "prod")) ==
        xt::xarray<std::int32_t>{5, 0, -2});
  CHECK(value<std::int32_t>(reduced(counts, rows, tape.constant(xt::xarray<std::int32_t>{4, -3}), "amin")) ==
        xt::xarray<std::int32_t>{5, -3, -2});
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Var x = tape.constant(Doubles{0, nan, 1}), part = tape.constant(Doubles{2, 3});
  for (const char* reduce : {"amax", "amin", "prod"})
    CHECK(std::isnan(value<double>(reduced(x, rows, part, reduce))(1)));
  CHECK(value<double>(reduced(x, rows, part, "set"))(1) == 3);
  const Var none = tape.constant(Array(Dtype::int64, {0})), nothing = tape.constant(Array(Dtype::float64, {0}));
  CHECK(value<double>(reduced(part, none, nothing, "prod")) == Doubles{2, 3});
  CHECK(value<double>(reduced(nothing, none, nothing, "amax")).size() == 0);
}

TEST_CASE("op index_reduce: what does not fit is refused, and indices out of range stop a play") {
  Tape tape;
  const Var x = tape.input("x", {3, 2}), rows = tape.input("rows", {2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(reduced(x, rows, x, "set"),
                       "index_reduce: 'part' of shape (3, 2) must have shape (2, 2), which x and the indices require",
                       ShapeError);
  CHECK_THROWS_WITH_AS(reduced(x, rows, x, "mul"),
                       "index_reduce: reduce \"mul\" must be one of \"set\", \"prod\", \"amax\", \"amin\"", Error);
  CHECK_THROWS_AS(reduced(tape.input("s", {}), rows, rows, "set"), ShapeError);
  const Var more = tape.input("part", {2, 2}), y = reduced(x, rows, more, "set");
  Player player(tape, {y});
  const xt::xarray<float> values = xt::ones<float>({3, 2}), part = xt::ones<float>({2, 2});
  const auto play = [&](const xt::xarray<std::int64_t>& at) { player.play({{x, values}, {rows, at}, {more, part}}); };
  play(xt::xarray<std::int64_t>{2, 0});
  CHECK_THROWS_AS(play(xt::xarray<std::int64_t>{0, 3}), Error);
  CHECK_THROWS_AS(play(xt::xarray<std::int64_t>{-1, 0}), Error);
}

TEST_CASE("op checked_indices: those below 0 count from the end, others out of range are errors") {
  Tape tape;
  const Var given = tape.input("given", {3}, Dtype::int32);
  const Var wrapped = checked(given, 4), plain = checked(given, 4, false);
  Player player(tape, {wrapped}), strict(tape, {plain});
  using Rows = xt::xarray<std::int32_t>;
  const Rows good{-4, 3, -1};
  player.play({{given, good}});
  CHECK(player.value<std::int64_t>(wrapped) == xt::xarray<std::int64_t>{0, 3, 3});
  for (const Rows& wrong : {Rows{0, 4, 0}, Rows{0, 0, -5}}) CHECK_THROWS_AS(player.play({{given, wrong}}), Error);
  CHECK_THROWS_AS(strict.play({{given, good}}), Error);
  CHECK_THROWS_AS(checked(given, -1), ShapeError);
  check_vmap([](const Vars& v) { return checked(cast(v[0], Dtype::int64), 4); }, {as_numbers({-4, 3, 0, 1}, {2, 2})});
}
