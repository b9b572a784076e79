#include <doctest/doctest.h>

#include "golden.hpp"
#include "played.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op reshape: keeps the row-major order") {
  const Doubles x = numbers({2, 6});
  const Doubles y = played_one([](const Vars& v) { return reshape(v[0], {3, -1, 1}); }, {x});
  CHECK(shape_of(y) == Shape{3, 4, 1});
  CHECK(std::equal(x.data(), x.data() + 12, y.data()));
  CHECK(shape_of(played_one([](const Vars& v) { return reshape(v[0], {}); }, {numbers({1, 1})})) == Shape{});
  CHECK(shape_of(played_one([](const Vars& v) { return reshape(v[0], {5, 0}); }, {numbers({0, 3})})) == Shape{5, 0});
}

TEST_CASE("op reshape: a transposed or broadcast array is read in its own row-major order") {
  const Doubles x = numbers({3, 4});
  CHECK(played_one(
            [](const Vars& v) {
              return reshape(transpose(v[0]), {2, 6});
            },
            {x}) == made_from({2, 6}, [&](const Shape& i) {
          const std::int64_t flat = i[0] * 6 + i[1];
          return element(x, {flat % 3, flat / 3});
        }));
  CHECK(played_one(
            [](const Vars& v) {
              return reshape(broadcast_to(v[0], {2, 3, 4}), {6, 4});
            },
            {x}) == made_from({6, 4}, [&](const Shape& i) {
          return element(x, {i[0] % 3, i[1]});
        }));
}

TEST_CASE("op reshape: is a view wherever strides can express it") {
  const Op& op = builtin_ops().at("reshape");
  const auto view = [&](const Layout& layout, const Shape& shape) {
    const Attributes attributes{{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}};
    const OpCall call{{attributes}, op, {{Dtype::float32, layout.shape}}, {{Dtype::float32, shape}}, nullptr, {}};
    return op.lowering.view.output(call, layout);
  };
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 500; ++round) {  // if there is a layout, it must be right
    Shape shape, target;
    for (std::int64_t left : {2, 3, 2, 2}) {
      if (random() % 2 == 0 || shape.empty())
        shape.push_back(left);
      else
        shape.back() *= left;
      if (random() % 3 == 0) shape.push_back(1);
      if (random() % 2 == 0 || target.empty())
        target.push_back(left);
      else
        target.back() *= left;
      if (random() % 3 == 0) target.insert(random() % (target.size() + 1), 1);
    }
    Scattered<float> x = scattered<float>(shape, random, {true, true, true, true});
    const std::optional<Layout> layout = view(x.layout, target);
    if (!layout) {
      ++refused;
      CHECK_FALSE(x.layout.contiguous());
      continue;
    }
    Scattered<float> y{x.memory, *layout};
    std::vector<float> from, to;
    for_each_index(shape, [&](const Shape& index) { from.push_back(x.at(index)); });
    for_each_index(target, [&](const Shape& index) { to.push_back(y.at(index)); });
    CHECK(from == to);
  }
  CHECK(refused > 10);
  CHECK(refused < 450);
}

TEST_CASE("op reshape: gradients have the shape of the input") {
  check_gradient([](const Vars& v) { return square(reshape(v[0], {3, 2})); }, {numbers({2, 3})});
  check_gradient([](const Vars& v) { return square(reshape(transpose(v[0]), {6})); }, {numbers({2, 3})});
}

TEST_CASE("op reshape: shapes with another number of elements are refused") {
  Tape tape;
  const Var x = tape.input("x", {2, 6});
  CHECK_THROWS_WITH_AS(reshape(x, {5, 2}),
                       "reshape: cannot reshape (2, 6), 12 elements, to (5, 2): that has 10 elements", ShapeError);
  CHECK_THROWS_WITH_AS(reshape(x, {5, -1}),
                       "reshape: cannot reshape (2, 6), 12 elements, to (5, -1): the other sizes multiply to 5, which "
                       "does not divide the number of elements",
                       ShapeError);
  CHECK_THROWS_AS(reshape(x, {-1, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {-2, 6}), ShapeError);
}

TEST_CASE("op expand_dims: puts an axis of size 1 anywhere") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK(expand_dims(x, 0).shape() == Shape{1, 2, 3});
  CHECK(expand_dims(x, 1).shape() == Shape{2, 1, 3});
  CHECK(expand_dims(x, 2).shape() == Shape{2, 3, 1});
  CHECK(expand_dims(x, -1).shape() == Shape{2, 3, 1});
  CHECK(expand_dims(x, -3).shape() == Shape{1, 2, 3});
  CHECK_THROWS_WITH_AS(expand_dims(x, 3), "expand_dims: axis 3 is out of range for a result of 3 axes", ShapeError);
  const Doubles values = numbers({2, 3});
  const Doubles y = played_one([](const Vars& v) { return expand_dims(transpose(v[0]), 1); }, {values});
  CHECK(y == made_from({3, 1, 2}, [&](const Shape& i) { return element(values, {i[2], i[0]}); }));
  check_gradient([](const Vars& v) { return square(expand_dims(v[0], 1)); }, {numbers({2, 2})});
}

TEST_CASE("op squeeze: drops axes of size 1") {
  Tape tape;
  const Var x = tape.input("x", {1, 3, 1, 2});
  CHECK(squeeze(x).shape() == Shape{3, 2});
  CHECK(squeeze(x, {0}).shape() == Shape{3, 1, 2});
  CHECK(squeeze(x, {-2}).shape() == Shape{1, 3, 2});
  CHECK_THROWS_WITH_AS(squeeze(x, {1}),
                       "squeeze: axis 1 of (1, 3, 1, 2) has size 3: only axes of size 1 can be dropped", ShapeError);
  const Doubles values = numbers({2, 1, 3});
  const Doubles y = played_one([](const Vars& v) { return squeeze(transpose(v[0])); }, {values});
  CHECK(y == made_from({3, 2}, [&](const Shape& i) { return element(values, {i[1], 0, i[0]}); }));
  check_gradient([](const Vars& v) { return square(squeeze(v[0], {1})); }, {numbers({2, 1, 2})});
}

TEST_CASE("golden values of ops on shapes, products and indices") {
  for (const char* op :
       {"reshape",    "broadcast_to", "transpose", "expand_dims", "concat",    "stack",  "unstack",     "flip",
        "cumsum",     "split",        "squeeze",   "tile",        "slice",     "pad",    "tril",        "triu",
        "diag_embed", "einsum",       "matmul",    "take",        "index_add", "gather", "scatter_add", "one_hot"}) {
    CAPTURE(op);
    check_golden("ops_shape.json", op);
  }
}
