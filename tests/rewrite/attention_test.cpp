#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "expansion.hpp"
#include "fused.hpp"
#include "xtape/player.hpp"

namespace attention_rule {

using namespace xtape;

namespace {
constexpr double masked_out = std::numeric_limits<double>::infinity();

/// Attention as in definitions, with q, k and v split from one product.
struct RecordedAttention {
  explicit RecordedAttention(Mode mode, const std::string& scores_equation = "bqhe,bkhe->bhqk", std::int64_t window = 0)
      : tape(mode) {
    x = tape.parameter("x", normal_array({2, 9, 12}, 1));
    w = tape.parameter("w", normal_array({12, 36}, 2));
    const Vars parts =
        unstack(rearrange(einsum("btd,df->btf", x, w), "b t (n h e) -> n b t h e", {{"n", 3}, {"h", 3}}), 0);
    const Var scores = einsum(scores_equation, parts[0], parts[1]) / 2.0;
    weights = softmax(masked_fill(scores, causal_mask(iota(tape, {2, 9}, 1), -1, window), -masked_out));
    heads = einsum("bhqk,bkhe->bqhe", dropout(weights, 0.2), parts[2]);
    loss = sum(square(heads) * tape.parameter("m", normal_array({2, 9, 3, 4}, 3)));
  }
  Tape tape;
  Var x, w, weights, heads, loss;
};

Count fused_attention(const Tape& tape, const Vars& outputs) {
  return fused("attention", tape, outputs);
}
}  // namespace

TEST_CASE("products, mask, softmax and dropout become attention, forward and backward, with the same random numbers") {
  for (const Mode mode : {Mode::train, Mode::eval}) {
    RecordedAttention r(mode);
    CHECK(fused_attention(r.tape, {r.heads}) == Count{1, 0});
    const Vars gradients = grad(r.loss, {r.x, r.w});
    CHECK(fused_attention(r.tape, {r.loss, gradients[0], gradients[1]}) == Count{1, 1});
  }
}

TEST_CASE("attention with a sliding window is fused, and equals its parts") {
  RecordedAttention r(Mode::train, "bqhe,bkhe->bhqk", 3);
  const Vars gradients = grad(r.loss, {r.x, r.w});
  const Vars outputs{r.heads, gradients[0], gradients[1]};
  CHECK(fused_attention(r.tape, outputs) == Count{1, 1});
  PlayerOptions reference;
  reference.passes = Passes::reference();
  Player fast(r.tape, outputs), by_parts(r.tape, outputs, reference);
  fast.play();
  by_parts.play();
  for (const Var& output : outputs)
    CHECK(xt::allclose(fast.view(output).to<double>(), by_parts.view(output).to<double>()));
}

TEST_CASE("attention is not fused if its weights are an output") {
  RecordedAttention r(Mode::eval);
  CHECK(fused_attention(r.tape, {r.heads, r.weights}) == Count{0, 0});
}

TEST_CASE("the operands of the scores may be in any order") {
  RecordedAttention r(Mode::eval, "bkhe,bqhe->bhqk");
  const Vars gradients = grad(r.loss, {r.x, r.w});
  CHECK(fused_attention(r.tape, {r.loss, gradients[0]}) == Count{1, 1});
}

TEST_CASE("sums over another axis than that of the softmax are not fused as attention") {
  Tape tape;
  const auto numbers = [&](const char* name, unsigned seed) {
    return tape.parameter(name, normal_array({2, 9, 3, 4}, seed));
  };
  const Var q = numbers("q", 1), k = numbers("k", 2), v = numbers("v", 3);
  const Var weights = softmax(einsum("bqhe,bkhe->bhqk", q, k) * 0.5);
  CHECK(fused_attention(tape, {einsum("bhqk,bqhe->bkhe", weights, v)}) == Count{0, 0});
  CHECK(fused_attention(tape, {einsum("bhqk,bkhe->bqhe", weights, v)}) == Count{1, 0});
}

}  // namespace attention_rule
