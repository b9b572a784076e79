// PlayerOptions::bits: what the promise of the same bits refuses.
#include <doctest/doctest.h>

#include <algorithm>

#include "error_of.hpp"
#include "needs_instructions.hpp"
#include "same_bits.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;
using test::error_of;

namespace {
Array halves(const Shape& shape) {
  Array array(Dtype::float32, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<float>()[i] = static_cast<float>(i % 13) * 0.5f - 3;
  return array;
}

/// An op whose kernel has other bits on each processor, as it says.
const Op& varying_op() {
  static const Op entry{.name = "varying",
                        .doc = "x itself.",
                        .inputs = {{"x", Accept::floating}},
                        .shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; },
                        .gradient = [](const GradientCall& call) { return Vars{call.cotangent()}; },
                        .lowering = {.kernel =
                                         [](const KernelCall& call) {
                                           return Kernel{[count = count_of(call.shape(0))](const KernelArguments& run) {
                                             std::copy_n(static_cast<const float*>(run.in[0]), count,
                                                         static_cast<float*>(run.out[0]));
                                           }};
                                         },
                                     .varies = "a table of the processor"}};
  return entry;
}

PlayerOptions promising(Bits bits, Precision precision = Precision::float32) {
  PlayerOptions options;
  options.bits = bits;
  options.precision = precision;
  return options;
}

std::string refusal(const Var& var, const PlayerOptions& options) {
  return error_of([&] { Player(var.tape(), {var}, options); });
}
}  // namespace

TEST_CASE("names of bits") {
  for (const Bits bits : {Bits::usual, Bits::same, Bits::fast}) CHECK(bits_named(name_of(bits)) == bits);
  CHECK(error_of([] { bits_named("sane"); }) == "bits are usual, same or fast, not 'sane'; did you mean 'same'?");
}

TEST_CASE("what keeps the promise has the bits of a play that does not ask for it") {
  Tape tape;
  const Var x = tape.parameter("x", halves({70, 130})), w = tape.parameter("w", halves({130, 90}));
  const Var y = softmax(matmul(x, w) * 0.01), loss = sum(y * y);
  const Vars outputs{loss, grad(loss, w)};
  if (!kernels().fuses) {
    CHECK(refusal(loss, promising(Bits::same)).starts_with("bits \"same\" needs fused multiply-adds"));
    return;
  }
  Player usual(tape, outputs), same(tape, outputs, promising(Bits::same));
  usual.play();
  same.play();
  for (const Var& output : outputs) CHECK(same_bits(usual.view(output), same.view(output)));
}

TEST_CASE("a play that asks for the promise refuses a precision and an op that break it, and names the call" *
          needs_fused()) {
  Tape tape;
  const Var x = tape.parameter("x", halves({70, 130})), w = tape.parameter("w", halves({130, 90}));
  const Var product = matmul(x, w);
  const std::string rounded = refusal(product, promising(Bits::same, Precision::bf16));
  CHECK(rounded.find("bits_test.cpp") != std::string::npos);
  CHECK(rounded.ends_with(
      "matmul: precision bf16 gives other bits on another processor, which bits \"same\" refuses: use "
      "precision float32"));
  CHECK(refusal(product, promising(Bits::usual, Precision::bf16)).empty());
  CHECK(refusal(sum(x), promising(Bits::same, Precision::bf16)).empty());  // it has no products

  const Var odd = apply(varying_op(), {x})[0];
  const std::string varies = refusal(odd, promising(Bits::same));
  CHECK(varies.find("bits_test.cpp") != std::string::npos);
  CHECK(
      varies.find("varying: 'varying' can have other bits on another processor (a table of the processor), which bits "
                  "\"same\" refuses: use bits \"usual\"") != std::string::npos);
  for (const Bits bits : {Bits::usual, Bits::fast}) CHECK(refusal(odd, promising(bits)).empty());
  const auto step = [](const Vars& slices, const Vars& states) {
    const Var next = states[0] + apply(varying_op(), {slices[0]})[0];
    return std::pair(Vars{next}, Vars{next});
  };
  const Var scanned = scan(step, {x}, {tape.parameter("state", halves({70}))}).outputs[0];
  CHECK(refusal(scanned, promising(Bits::same)).find("varying") != std::string::npos);
  CHECK(refusal(checkpoint([](const Vars& v) { return apply(varying_op(), {v[0]}); }, {x})[0], promising(Bits::same))
            .find("varying") != std::string::npos);
}
