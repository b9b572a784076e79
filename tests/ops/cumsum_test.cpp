#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op cumsum: axes, both directions, gradients, golden values") {
  check_golden("ops_pointwise.json", "cumsum");
  const xt::xarray<double> points{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}};
  for (std::int64_t axis : {0, 1})
    for (bool reverse : {false, true})
      check_gradients_on([&](const Var& x) { return cumsum(x * x, axis, reverse); }, points);
  CHECK(played<std::int32_t>([](const Vars& x) { return cumsum(x[0], 0, true); }, {{1, 2, 3}}).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{6, 5, 3});
}

TEST_CASE("op cumsum: int32 and bool are summed as int64, as by sum") {
  const Array y = played<std::int32_t>([](const Vars& x) { return cumsum(x[0]); }, {{2000000000, 2000000000, -5}});
  CHECK(y.to<std::int64_t>() == xt::xarray<std::int64_t>{2000000000, 4000000000, 3999999995});
  const Array counts = played<bool>([](const Vars& x) { return cumsum(x[0], 0, true); }, {{true, false, true}});
  CHECK(counts.to<std::int64_t>() == xt::xarray<std::int64_t>{2, 1, 1});
}

TEST_CASE("op cumsum: along a middle axis, for one and for several threads") {
  constexpr std::int64_t outer = 5, size = 7, inner = 2500;
  Array numbers(Dtype::int64, {outer, size, inner});
  for (std::int64_t i = 0; i < numbers.count(); ++i) numbers.as<std::int64_t>()[i] = i * 7919 % 1009 - 500;
  for (const bool reverse : {false, true})
    for (const int threads : {1, 2, 3}) {
      Tape tape;
      const Var y = cumsum(tape.parameter("x", numbers), 1, reverse);
      Player player(tape, {y}, {.threads = threads});
      player.play();
      const xt::xarray<std::int64_t> found = player.tensor<std::int64_t>(y);
      bool right = true;
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < inner; ++i) {
          std::int64_t sum = 0;
          for (std::int64_t k = 0; k < size; ++k) {
            const std::int64_t at = (o * size + (reverse ? size - 1 - k : k)) * inner + i;
            sum += numbers.as<std::int64_t>()[at];
            right = right && found.data()[at] == sum;
          }
        }
      CHECK(right);
    }
  const xt::xarray<float> none = xt::xarray<float>::from_shape({3, 0});
  CHECK(played_on<float>([](const Vars& x) { return cumsum(x[0], 0); }, {none}).shape() == Shape{3, 0});
}

TEST_CASE("op cumsum: long sums keep their precision, infinities stay, refusals") {
  const std::int64_t n = 1000000;
  Array tenths(Dtype::float32, {n});
  std::fill_n(tenths.as<float>(), n, 0.1f);
  Tape tape;
  const Array y = fast(cumsum(tape.parameter("x", tenths)));
  CHECK(y.as<float>()[n - 1] == static_cast<float>(static_cast<double>(0.1f) * n));
  const Array big = played<double>([](const Vars& x) { return cumsum(x[0]); }, {{1e16, 1, -1e16}});
  CHECK(big.as<double>()[2] == 1);
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(played<double>([](const Vars& x) { return cumsum(x[0]); }, {{1, inf, 2}}).to<double>() ==
        xt::xarray<double>{1, inf, inf});
  const xt::xarray<float> none = xt::xarray<float>::from_shape({0, 2});
  CHECK(played_on<float>([](const Vars& x) { return cumsum(x[0], 0); }, {none}).shape() == Shape{0, 2});
  CHECK_THROWS_AS(cumsum(tape.input("s", {})), ShapeError);
}
