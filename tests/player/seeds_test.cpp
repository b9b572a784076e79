// Values printed by two tutorials on attention: "The Transformer family" on scaled dot-product attention (PyTorch), and
// one on GPT-2's masked self-attention (TensorFlow).
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
constexpr double minus_scores = std::numeric_limits<double>::infinity();

void check_printed(const Array& got, const xt::xarray<float>& printed, float half_a_digit) {
  const xt::xarray<float> values = got.to<float>();
  REQUIRE(values.shape() == printed.shape());
  for (std::size_t i = 0; i < printed.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values.data()[i] - printed.data()[i]) <= half_a_digit);
  }
}

/// [q, k]: matmul(x, x^T).
Var inner_products(const Var& x) {
  return sum(expand_dims(x, 1) * expand_dims(x, 0), {-1});
}
}  // namespace

TEST_CASE("self-attention of one vector gives the vector, and of three the published weights") {
  Tape tape;
  const Var one = tape.parameter("one", xt::xarray<float>{{0.1f, 0.1f, 0.8f}});
  xt::xarray<float> one_by_one = xt::xarray<float>::from_shape({1, 1});
  one_by_one(0, 0) = 1;
  const Var alone = softmax(inner_products(one) / std::sqrt(3.0));
  check_printed(fast(alone), one_by_one, 0);
  check_printed(fast(sum(expand_dims(alone, -1) * expand_dims(one, 0), {1})), {{0.1f, 0.1f, 0.8f}}, 0.00005f);

  const Var x = tape.parameter("x", xt::xarray<float>{{0, 0, 1}, {0, 0, 2}, {1, 0, 0}});
  const Var alpha = softmax(inner_products(x) / std::sqrt(3.0));
  const xt::xarray<float> printed{
      {0.2992f, 0.5329f, 0.1679f}, {0.2228f, 0.7070f, 0.0702f}, {0.2645f, 0.2645f, 0.4711f}};
  check_printed(fast(alpha), printed, 0.00005f);
  check_printed(evaluate(alpha), printed, 0.00005f);
}

TEST_CASE("the look-ahead mask combined with the padding mask is the published one") {
  Tape tape;
  const Var tokens = tape.parameter("tokens", xt::xarray<std::int32_t>{{17, 4, 9, 21}});
  const Var padding = expand_dims(expand_dims(tokens == 0, 1), 1);  // [b, 1, 1, t]
  const Var mask = cast(padding | causal_mask(tokens), Dtype::float32);
  REQUIRE(mask.shape() == Shape{1, 1, 4, 4});
  check_printed(fast(mask), {{{{0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}}}}, 0);

  // Padded tokens are hidden from every query, in addition to later tokens.
  const Var padded = tape.parameter("padded", xt::xarray<std::int32_t>{{17, 4, 0, 0}});
  const Var both = cast(expand_dims(expand_dims(padded == 0, 1), 1) | causal_mask(padded), Dtype::float32);
  check_printed(fast(both), {{{{0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}}}}, 0);
}

TEST_CASE("softmax of four scores, also with two of them masked, agrees with values published in half precision") {
  Tape tape;
  const Var scores = tape.parameter("scores", xt::xarray<float>{10, 8, 9, 6});
  check_printed(fast(softmax(scores)), {0.657f, 0.0889f, 0.2418f, 0.01204f}, 0.0005f);
  const Var hidden = tape.parameter("hidden", xt::xarray<bool>{false, false, true, true});
  const Var masked = softmax(masked_fill(scores, hidden, -minus_scores));
  check_printed(fast(masked), {0.881f, 0.1192f, 0, 0}, 0.0005f);
  const xt::xarray<float> weights = fast(masked).to<float>();
  CHECK(weights(2) == 0);
  CHECK(weights(3) == 0);
}

TEST_CASE("attention weights of the published scores, with and without the mask") {
  Tape tape;
  const Var scores = tape.parameter("scores", xt::xarray<float>{{0.0039889f, -0.00020433f, -0.00011768f, 0.00030697f},
                                                                {-0.00020433f, 0.00538071f, -0.00027396f, 0.00080827f},
                                                                {-0.00011768f, -0.00027396f, 0.0050227f, -0.0006222f},
                                                                {0.00030697f, 0.00080827f, -0.0006222f, 0.00571752f}});
  check_printed(fast(softmax(scores)),
                {{0.25074962f, 0.24970035f, 0.24972199f, 0.24982807f},
                 {0.24959165f, 0.25098953f, 0.24957427f, 0.24984452f},
                 {0.24971952f, 0.24968047f, 0.25100645f, 0.24959356f},
                 {0.24968803f, 0.24981323f, 0.24945612f, 0.25104263f}},
                1e-6f);
  const Var tokens = tape.parameter("tokens", xt::xarray<std::int32_t>{{17, 4, 9, 21}});
  check_printed(fast(softmax(masked_fill(scores, causal_mask(tokens), -minus_scores))),
                {{1, 0, 0, 0},
                 {0.49860373f, 0.50139624f, 0, 0},
                 {0.332779f, 0.332727f, 0.334494f, 0},
                 {0.24968803f, 0.24981323f, 0.24945612f, 0.25104263f}},
                1e-6f);
}
