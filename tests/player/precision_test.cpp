// PlayerOptions::precision: which products round their factors, and that nothing else does.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/system/instruction_set.hpp"
#include "needs_instructions.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
Array normal_values(const Shape& shape, unsigned seed, Dtype dtype = Dtype::float32) {
  Array array(dtype, shape);
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (dtype == Dtype::float32)
      array.as<float>()[i] = static_cast<float>(normal(bits));
    else
      array.as<double>()[i] = normal(bits);
  return array;
}

Array played_in(const Var& var, Precision precision, int threads = 2) {
  PlayerOptions options;
  options.precision = precision;
  options.threads = threads;
  Player player(var.tape(), {var}, options);
  player.play();
  return Array(player.view(var));
}

bool equal_bits(const Array& a, const Array& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// The root of the mean square of the difference, relative to that of b.
double mean_distance(const Array& a, const Array& b) {
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = a.as<float>()[i], y = b.as<float>()[i];
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference / size);
}
}  // namespace

TEST_CASE("bf16 rounds the operands of products: of einsum, attention and scans" * needs_bfloat16()) {
  Tape tape;
  const Var x = tape.parameter("x", normal_values({64, 96}, 1)), w = tape.parameter("w", normal_values({96, 80}, 2));
  const Var product = matmul(x, w);
  const Var q = tape.parameter("q", normal_values({2, 128, 4, 32}, 3));
  const Var scores = einsum("bqhd,bkhd->bhqk", Vars{q, q}) / 6;
  const Var attended = einsum("bhqk,bkhd->bqhd", Vars{softmax(scores), q});
  const Var recurrent = tape.parameter("recurrent", normal_values({96, 96}, 4));
  const Var steps = tape.parameter("steps", normal_values({64, 5, 96}, 5));
  const auto cell = [&](const Vars& slices, const Vars& states) {
    const Var next = tanh(slices[0] + matmul(states[0], recurrent) * 0.1);
    return std::pair(Vars{next}, Vars{next});
  };
  for (const Var& var : {product, attended, scan(cell, {steps}, {x}).outputs[0]}) {
    const Array exact = played_in(var, Precision::float32), rounded = played_in(var, Precision::bf16);
    const double error = mean_distance(rounded, exact);
    CHECK(error > 1e-4);
    CHECK(error < 1e-2);
    CHECK(equal_bits(rounded, played_in(var, Precision::bf16, 1)));
    CHECK(equal_bits(rounded, played_in(var, Precision::bf16, 3)));
    CHECK(mean_distance(played_in(var, Precision::bf16x3), exact) < 1e-4);
  }
}

TEST_CASE("no precision changes sums, elementwise ops, float64 or products of few rows") {
  Tape tape;
  const Var x = tape.parameter("x", normal_values({64, 96}, 1));
  const Var few = tape.parameter("few", normal_values({4, 96}, 2)), w = tape.parameter("w", normal_values({96, 80}, 3));
  const Var x64 = tape.parameter("x64", normal_values({64, 96}, 4, Dtype::float64));
  const Var w64 = tape.parameter("w64", normal_values({96, 80}, 5, Dtype::float64));
  for (const Var& var : {softmax(x), sum(x * x, {0}), layer_norm(x), matmul(few, w), matmul(x64, w64)})
    for (const Precision precision : {Precision::bf16, Precision::bf16x3})
      CHECK(equal_bits(played_in(var, precision), played_in(var, Precision::float32)));
}

TEST_CASE("a model learns with bf16 as with float32" * needs_bfloat16()) {
  const auto last_loss = [](Precision precision) {
    Tape tape;
    Store store;
    store.add("w", normal_values({64, 128}, 1));
    store.add("v", normal_values({128, 32}, 2));
    const Var x = tape.parameter("x", normal_values({128, 64}, 3)),
              y = tape.parameter("y", normal_values({128, 32}, 4));
    const Var w = tape.parameter(store, "w"), v = tape.parameter(store, "v");
    const Var loss = mean(square(matmul(tanh(matmul(x, w) * 0.1), v) - y));
    Vars outputs = grad(loss, {w, v});
    outputs.push_back(loss);
    PlayerOptions options;
    options.precision = precision;
    Player player(tape, outputs, options);
    OptimizerOptions adam;
    adam.kind = OptimizerOptions::Kind::adam;
    Optimizer optimizer(store, adam);
    for (int i = 0; i < 60; ++i) {
      player.play();
      optimizer.update({player.view(outputs[0]), player.view(outputs[1])}, 0.01);
    }
    return static_cast<double>(*player.view(loss).as<float>());
  };
  const double exact = last_loss(Precision::float32);
  CHECK(last_loss(Precision::bf16) == doctest::Approx(exact).epsilon(0.02));
}

TEST_CASE("bf16 stores values that only products read as bfloat16, with the same bits" * needs_bfloat16()) {
  Tape tape;
  const Var x = tape.parameter("x", normal_values({128, 256}, 1)),
            w = tape.parameter("w", normal_values({256, 512}, 2));
  const Var v = tape.parameter("v", normal_values({512, 256}, 3));
  const Var hidden = gelu(matmul(x, w));
  const Var loss = sum(square(matmul(reshape(hidden, {4, 32, 512}), v)));
  const Vars gradients = grad(loss, {x, w, v});
  const auto hidden_bytes = [&](Precision precision) {
    PlayerOptions options;
    options.precision = precision;
    const Player player(tape, gradients, options);
    for (const Plan::Buffer& buffer : player.plan().buffers)
      if (buffer.name == "#" + std::to_string(hidden.id().node) + " gelu") return buffer.bytes;
    return std::size_t{0};
  };
  if (instruction_set() == InstructionSet::avx512_bf16) {  // the matrix unit reads float32
    CHECK(hidden_bytes(Precision::float32) == 128 * 512 * 4);
    CHECK(hidden_bytes(Precision::bf16) == 128 * 512 * 2);
  }
  for (const Var& gradient : gradients) {
    PlayerOptions plain;
    plain.precision = Precision::bf16;
    plain.passes.fuse = false;
    Player player(tape, {gradient}, plain);
    player.play();
    CHECK(equal_bits(played_in(gradient, Precision::bf16), Array(player.view(gradient))));
  }
}
