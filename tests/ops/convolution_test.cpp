#include "xtape/ops/convolution.hpp"

#include <doctest/doctest.h>

#include <type_traits>

#include "golden.hpp"
#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/vmap.hpp"

using namespace xtape;

TEST_CASE("op conv: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "conv", 1e-10, 1e-4);
}

TEST_CASE("op conv: gives PyTorch's values and gradients of convolutions that are padded by elements") {
  check_golden("ops_resampling.json", "conv", 1e-10, 1e-4);
  const Doubles x = numbers({1, 2, 5}), w = numbers({1, 2, 3}, 1);
  check_gradient([](const Vars& v) { return conv1d(v[0], v[1], {}, 1, 2, 1, 1, "reflect"); }, {x, w});
  Tape tape;
  const Var a = tape.input("a", {1, 2, 5}), b = tape.input("b", {1, 2, 3});
  const std::size_t size = tape.size();
  CHECK_THROWS_AS(conv1d(a, b, {}, 1, 2, 1, 1, "mirror"), Error);
  CHECK_THROWS_AS(conv1d(a, b, {}, 1, 5, 1, 1, "reflect"), ShapeError);
  CHECK_THROWS_AS(conv1d(a, b, a, 1, 2, 1, 1, "reflect"), ShapeError);
  CHECK(tape.size() == size);
}

TEST_CASE("op conv_transpose: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "conv_transpose", 1e-10, 1e-4);
}

TEST_CASE("op conv: sums products over channels and windows") {
  const Doubles x = numbers({2, 4, 6, 7}, 1), w = numbers({6, 2, 3, 2}, 2), bias = numbers({6}, 3);
  const auto expected = [&](const Shape& at) {
    double sum = element(bias, {at[1]});
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t k = 0; k < 3; ++k)
        for (std::int64_t l = 0; l < 2; ++l) {
          const std::int64_t i = at[2] * 2 + k - 1, j = at[3] + l * 3 - 2;
          if (i < 0 || i >= 6 || j < 0 || j >= 7) continue;
          sum += element(x, {at[0], at[1] / 3 * 2 + c, i, j}) * element(w, {at[1], c, k, l});
        }
    return sum;
  };
  const Doubles y = played_one(
      [](const Vars& v) {
        return conv2d(v[0], v[1], v[2], {2, 1}, {1, 2}, {1, 3}, 2);
      },
      {x, w, bias});
  CHECK(near(y, made_from({2, 6, 3, 8}, expected), 1e-13));
}

TEST_CASE("op conv: values and gradients of sizes for which products pack windows in tiles") {
  const Doubles x = numbers({2, 8, 12, 20}, 1), w = numbers({16, 8, 3, 3}, 2), dy = numbers({2, 16, 12, 20}, 3);
  const std::vector<Doubles> found = played(
      [](const Vars& v) {
        const Var y = conv2d(v[0], v[1], {}, {1}, "same");
        Vars all = grad({y}, {v[0], v[1]}, {v[2]});
        all.push_back(y);
        return all;
      },
      {x, w, dy}, 1e-12, 1e-4);
  Doubles y = xt::zeros_like(dy), dx = xt::zeros_like(x), dw = xt::zeros_like(w);
  for_each_index({2, 16, 12, 20}, [&](const Shape& at) {
    const auto b = static_cast<std::size_t>(at[0]), o = static_cast<std::size_t>(at[1]);
    for_each_index({8, 3, 3}, [&](const Shape& of) {
      const std::int64_t i = at[2] + of[1] - 1, j = at[3] + of[2] - 1;
      if (i < 0 || i >= 12 || j < 0 || j >= 20) return;
      y(b, o, at[2], at[3]) += x(b, of[0], i, j) * w(o, of[0], of[1], of[2]);
      dx(b, of[0], i, j) += dy(b, o, at[2], at[3]) * w(o, of[0], of[1], of[2]);
      dw(o, of[0], of[1], of[2]) += dy(b, o, at[2], at[3]) * x(b, of[0], i, j);
    });
  });
  CHECK(near(found[0], dx, 1e-12));
  CHECK(near(found[1], dw, 1e-12));
  CHECK(near(found[2], y, 1e-12));
}

TEST_CASE("op conv: first and second gradients") {
  check_gradient([](const Vars& v) { return conv1d(v[0], v[1], v[2], {2}, 1, {2}, 2); },
                 {numbers({2, 2, 8}, 1), numbers({4, 1, 3}, 2), numbers({4}, 3)});
  check_gradient([](const Vars& v) { return square(conv2d(v[0], v[1], {}, {1}, "same")); },
                 {numbers({2, 2, 3, 4}, 1), numbers({3, 2, 3, 2}, 2)});
}

TEST_CASE("op conv_transpose: first and second gradients") {
  check_gradient([](const Vars& v) { return conv_transpose1d(v[0], v[1], v[2], {2}, {1}, {1}, 2); },
                 {numbers({2, 2, 4}, 1), numbers({2, 2, 3}, 2), numbers({4}, 3)});
  check_gradient([](const Vars& v) { return square(conv_transpose2d(v[0], v[1])); },
                 {numbers({2, 2, 2, 3}, 1), numbers({2, 1, 3, 2}, 2)});
}

TEST_CASE("op conv_transpose: is the adjoint of conv, also where windows leave elements over") {
  // <conv(x), y> = <x, conv_transpose(y)>
  const Doubles x = numbers({2, 3, 8, 7}, 1), w = numbers({4, 3, 3, 2}, 2), y = numbers({2, 4, 4, 3}, 3);
  const std::vector<Doubles> both = played(
      [](const Vars& v) {
        return Vars{sum(conv2d(v[0], v[1], {}, {2, 2}, {1, 0}) * v[2]),
                    sum(v[0] * conv_transpose2d(v[2], v[1], {}, {2, 2}, {1, 0}, {1, 1}))};
      },
      {x, w, y});
  CHECK(near(both[0], both[1], 1e-12));
}

TEST_CASE("op conv: for one example after the other, with weights that differ or not") {
  const Doubles x = numbers({3, 2, 4, 6}, 1), w = numbers({3, 4, 2, 3}, 2);
  for (const bool differ : {false, true}) {
    const auto one = [](const Var& of, const Var& weight) { return conv1d(of, weight, {}, {2}, 1, {1}, 2); };
    const std::vector<Doubles> both = played(
        [&](const Vars& v) {
          const Var first = squeeze(slice(v[1], {0}, {1}), {0});
          const Vars mapped = differ ? vmap([&](const Vars& in) { return Vars{one(in[0], in[1])}; }, {v[0], v[1]})
                                     : vmap([&](const Vars& in) { return Vars{one(in[0], first)}; }, {v[0]});
          Vars each;
          const Vars xs = unstack(v[0]), ws = unstack(v[1]);
          for (std::size_t i = 0; i < 3; ++i) each.push_back(one(xs[i], differ ? ws[i] : first));
          return Vars{mapped[0], stack(each)};
        },
        {x, w});
    CHECK(near(both[0], both[1], 1e-13));
  }
}

TEST_CASE("op conv: of no examples, and of integers") {
  CHECK(shape_of(played_one([](const Vars& v) { return conv1d(v[0], v[1]); },
                            {numbers({0, 2, 4}), numbers({3, 2, 2})})) == Shape{0, 3, 3});
  Tape tape;
  const Var x = cast(iota(tape, {1, 1, 4}, 2), Dtype::int32), w = cast(iota(tape, {1, 1, 2}, 2), Dtype::int32);
  const Var y = conv1d(x, w);
  Player player(tape, {y});
  player.play({});
  CHECK(as_doubles(player.view(y)) == Doubles{{{1, 2, 3}}});
}

static_assert(std::is_convertible_v<std::size_t, PerAxis> && std::is_convertible_v<unsigned char, ConvPadding>);
static_assert(!std::is_convertible_v<bool, PerAxis> && !std::is_convertible_v<bool, ConvPadding>);

TEST_CASE("op conv: refuses shapes and numbers that do not fit") {
  Tape tape;
  const Var x = tape.input("x", {2, 4, 6}), w = tape.input("w", {6, 2, 3}), image = tape.input("i", {1, 4, 6, 6});
  CHECK_THROWS_WITH_AS(conv1d(x, w), "conv: x of shape (2, 4, 6) does not fit a weight of shape (6, 2, 3) in 1 group",
                       ShapeError);
  CHECK(conv1d(x, w, {}, {1}, 0, {1}, 2).shape() == Shape{2, 6, 4});
  CHECK_THROWS_AS(conv1d(x, w, {}, {1}, 0, {1}, 4), ShapeError);
  CHECK_THROWS_AS(conv1d(x, w, {}, {1}, 0, {1}, 0), Error);
  CHECK_THROWS_AS(conv1d(image, w), ShapeError);
  CHECK_THROWS_AS(conv1d(x, w, {}, {1, 1}, 0, {1}, 2), ShapeError);
  CHECK_THROWS_AS(conv1d(x, w, {}, {2}, "same", {1}, 2), Error);
  CHECK_THROWS_AS(conv1d(x, w, {}, {1}, "full", {1}, 2), Error);
  CHECK_THROWS_WITH_AS(conv1d(x, w, {}, {1}, -1, {1}, 2), "conv: padding must be at least 0, got -1", ShapeError);
  CHECK_THROWS_AS(conv1d(x, w, {}, {1}, 0, {3}, 2), ShapeError);
  CHECK_THROWS_AS(conv1d(x, w, tape.input("b", {5}), {1}, 0, {1}, 2), ShapeError);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(conv1d(x, w, {}, {1}, huge, {1}, 2), ShapeError);
  CHECK_THROWS_AS(conv1d(x, w, {}, {1}, 0, {huge}, 2), ShapeError);
  const Var back = tape.input("back", {4, 2, 3});
  CHECK_THROWS_AS(conv_transpose1d(x, w), ShapeError);
  CHECK_THROWS_AS(conv_transpose1d(x, back, {}, {2}, {0}, {2}), ShapeError);
  CHECK_THROWS_AS(conv_transpose1d(x, back, {}, {huge}), ShapeError);
  CHECK_THROWS_AS(conv_transpose1d(x, back, {}, {1}, {9}), ShapeError);
}
