// What runs band by band behind another step gives the same bits as by itself.
#include <doctest/doctest.h>

#include <string>

#include "allocations.hpp"
#include "expansion.hpp"
#include "steps.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
/// The names of the steps, each between spaces; groups are joined by " > ".
std::string names_of(const Player& player) {
  std::string names = " ";
  for (const Plan::Step& step : player.plan().steps) names += step.op + "  ";
  return names;
}

/// Plays with bands and without, on 1, 2 and 3 threads, in reused memory and not: all must give the same bits. Returns
/// the names of the steps where memory is reused.
std::string played(const Tape& tape, const Vars& outputs) {
  PlayerOptions plain;
  plain.passes.bands = false;
  plain.threads = 1;
  Player alone(tape, outputs, plain);
  alone.play({}, 5);
  CHECK(names_of(alone).find('>') == std::string::npos);
  std::string names;
  for (int threads : {1, 2, 3})
    for (bool reuse : {false, true}) {
      PlayerOptions options;
      options.threads = threads;
      options.passes.reuse = options.passes.in_place = reuse;
      Player player(tape, outputs, options);
      player.play({}, 5);
      CAPTURE(threads);
      CAPTURE(reuse);
      for (const Var& output : outputs) CHECK(player.value<float>(output) == alone.value<float>(output));
      names = names_of(player);
    }
  return names;
}

bool has(const std::string& names, const std::string& name) {
  return names.find(" " + name + " ") != std::string::npos;
}

Var drawn(Tape& tape, const std::string& name, const Shape& shape, unsigned seed) {
  return tape.parameter(name, single(normal_array(std::vector<std::size_t>(shape.begin(), shape.end()), seed)));
}

/// Whether the products here finish their rows some at a time: processors with AVX-512 or the matrix unit.
bool products_in_bands() {
  Tape tape(Mode::eval);
  const Var y = gelu(einsum("mk,kn->mn", drawn(tape, "x", {300, 64}, 1), drawn(tape, "w", {64, 96}, 2)));
  return steps(Player(tape, {y}), "einsum > gelu") == 1;
}
}  // namespace

TEST_CASE("bias, activation, dropout, residual and norm run behind the product, and in its gradient") {
  Tape tape(Mode::train);
  const Var x = drawn(tape, "x", {4, 150, 64}, 1), w = drawn(tape, "w", {64, 256}, 2), b = drawn(tape, "b", {256}, 3);
  const Var v = drawn(tape, "v", {256, 64}, 4), g = drawn(tape, "g", {64}, 5), c = drawn(tape, "c", {64}, 6);
  const Var hidden = gelu(einsum("btd,dh->bth", x, w) + b);
  const Var y = layer_norm(x + dropout(einsum("bth,hd->btd", hidden, v), 0.1), g, c);
  Vars outputs = grad(sum(y * y), {x, w, b, v, g, c});
  outputs.push_back(y);
  const std::string names = played(tape, outputs);
  CAPTURE(names);
  if (products_in_bands()) {
    CHECK(has(names, "einsum > add+gelu"));
    CHECK(has(names, "einsum > dropout+add > layer_norm"));
    CHECK(has(names, "einsum > gelu_grad"));
  } else {
    CHECK(has(names, "dropout+add > layer_norm"));
  }
}

TEST_CASE("a sum runs before its norm, whatever computed the terms, and behind the gradient of one") {
  Tape tape(Mode::train);
  const Var x = drawn(tape, "x", {700, 50}, 1), y = drawn(tape, "y", {700, 50}, 2);  // rows of no whole register
  const Var middle = x * y + x;
  const Var z = layer_norm(middle), r = rms_norm(middle + y);
  Vars outputs = grad(sum(z * y) + sum(r * x), {x, y});
  outputs.push_back(z);
  outputs.push_back(r);
  const std::string names = played(tape, outputs);
  CAPTURE(names);
  CHECK(names.find("> layer_norm") != std::string::npos);
  CHECK(names.find("> rms_norm") != std::string::npos);
  CHECK(names.find("norm_grad > add") != std::string::npos);
}

TEST_CASE("what a product still reads is not written over behind it") {
  Tape tape(Mode::eval);
  const Var start = tanh(drawn(tape, "x", {96, 400}, 1));  // nobody reads it later, and every row of y needs its columns
  const Var y = reshape(start, {400, 96}) * einsum("km,kn->mn", start, drawn(tape, "w", {96, 96}, 2));
  played(tape, {y});
}

TEST_CASE("rows that are not there yet are not read") {
  Tape tape(Mode::eval);
  const Var root = einsum("mk,kn->mn", drawn(tape, "x", {400, 320}, 1), drawn(tape, "w", {320, 96}, 2));
  played(tape, {root * slice(root, {399, 0}, {400, 96})});  // the last row, by all
  played(tape, {relu(root) + flip(root, {0})});
  played(tape, {layer_norm(reshape(root, {5, 7680}))});  // rows of 80 of the product's, which come some 64 at a time
  played(tape, {layer_norm(reshape(root, {1200, 32}))});
}

TEST_CASE("what is ready at the end of a gradient alone is not read before") {
  Tape tape(Mode::train);
  const Var x = drawn(tape, "x", {1, 64}, 1), weight = drawn(tape, "weight", {64}, 2);
  const Vars gradients = grad(sum(square(layer_norm(x, weight))), {x, weight});  // both of 64 elements
  played(tape, {gradients[1] * 2.0, gradients[0] + 1.0});
}

TEST_CASE("arrays of one row and of none") {
  for (std::int64_t rows : {0, 1}) {
    Tape tape(Mode::eval);
    const Var x = drawn(tape, "x", {rows, 64}, 1), w = drawn(tape, "w", {64, 96}, 2);
    played(tape, {layer_norm(gelu(einsum("mk,kn->mn", x, w)) + 1.0)});
  }
}

TEST_CASE("groups allocate nothing while they play") {
  if (!allocations_are_counted()) return;
  Tape tape(Mode::train);
  const Var x = drawn(tape, "x", {600, 64}, 1), w = drawn(tape, "w", {64, 96}, 2);
  const Var y = layer_norm(x + einsum("mk,nk->mn", gelu(einsum("mk,kn->mn", x, w)), w));
  PlayerOptions options;
  options.threads = 2;
  Player player(tape, grad(sum(y * y), {x, w}), options);
  CHECK(names_of(player).find('>') != std::string::npos);
  for (int i = 0; i < 3; ++i) player.play();  // the OpenMP library makes its team once
  const AllocationCount allocations;
  for (std::uint64_t step = 0; step < 5; ++step) player.play({}, step);
  CHECK(allocations.count() == 0);
}
