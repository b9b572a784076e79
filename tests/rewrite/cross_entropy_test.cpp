#include <doctest/doctest.h>

#include <algorithm>

#include "expansion.hpp"
#include "fused.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// A projection to `classes` and the mean cross-entropy, as in definitions.
struct RecordedLogits {
  RecordedLogits(std::size_t rows, std::size_t classes, bool biased) {
    x = tape.parameter("x", single(normal_array({2, rows / 2, 4}, 1)));
    w = tape.parameter("w", single(normal_array({classes, 4}, 2)));
    bias = tape.parameter("bias", single(normal_array({classes}, 3)));
    xt::xarray<std::int64_t> rights = xt::xarray<std::int64_t>::from_shape({2, rows / 2});
    for (std::size_t i = 0; i < rights.size(); ++i)
      rights.data()[i] = i % 11 == 3 ? -1 : static_cast<std::int64_t>(i * 7919 % classes);
    const Var product = einsum("btd,vd->btv", x, w);
    logits = biased ? product + bias : product;
    const auto [sum, count] = cross_entropy_sum(logits, tape.constant(rights), -1, 0.1);
    loss = sum / cast(count, Dtype::float32);
  }
  Tape tape{Mode::train};
  Var x, w, bias, logits, loss;
};

std::int64_t fused_losses(const Tape& tape, const Vars& outputs) {
  return fused("product_cross_entropy", tape, outputs, 2e-6).first;
}
}  // namespace

TEST_CASE("a projection to many logits, its cross-entropy and their gradients are played as one op") {
  for (bool biased : {false, true}) {
    RecordedLogits r(1030, 5500, biased);
    Vars wanted{r.x, r.w};
    if (biased) wanted.push_back(r.bias);
    Vars outputs = grad(r.loss, wanted);
    outputs.push_back(r.loss);
    CHECK(fused_losses(r.tape, outputs) == 1);
    PlayerOptions off;
    off.passes.fuse = false;
    const std::size_t logits = 1030 * 5500 * sizeof(float);
    CHECK(Player(r.tape, outputs).plan().peak_bytes() + logits / 4 < Player(r.tape, outputs, off).plan().peak_bytes());
  }
}

TEST_CASE("nothing is fused if the logits are an output, are few, or have no gradient") {
  RecordedLogits many(1030, 5500, true);
  CHECK(fused_losses(many.tape, {many.loss}) == 0);
  Vars outputs = grad(many.loss, {many.x, many.w});
  outputs.push_back(many.logits);
  CHECK(fused_losses(many.tape, outputs) == 0);
  RecordedLogits few(64, 50, true);
  CHECK(fused_losses(few.tape, {few.loss, grad(few.loss, {few.x})[0]}) == 0);
}
