// Errors about values while playing name the user's op and where it was recorded.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "steps.hpp"
#include "xtape/grad.hpp"
#include "xtape/inspect.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

namespace places {

using namespace xtape;

namespace {
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The error of playing `outputs` with the indices -1. It is the same for all kinds of plans and any number of threads.
std::string error_of_playing(const Tape& tape, const Vars& outputs, const Var& indices) {
  const Array wrong(xt::xarray<std::int64_t>(xt::ones<std::int64_t>({static_cast<int>(indices.shape()[0])}) * -1));
  std::string found;
  for (const bool reference : {true, false})
    for (const int threads : {1, 2})
      for (const bool profile : {false, true}) {
        PlayerOptions options;
        if (reference) options.passes.elementwise = options.passes.fuse = false;
        options.threads = threads;
        options.profile = profile;
        Player player(tape, outputs, options);
        const std::string error = error_of([&] { player.play({{indices, wrong}}); });
        CHECK((found.empty() || found == error));
        CHECK(error_of([&] {
                throw Error(find_failure(recorded_play(player, {{indices, wrong}}))->failure.what);
              }) == error);
        found = error;
      }
  return found;
}
const char* const stray = "index -1 (at flat position 0) is out of range: x has size 4 along the axis";

struct Places {
  Tape tape;
  Var x = tape.parameter("x", Array(Dtype::float32, {4, 3}));
  Var indices = tape.input("indices", {2}, Dtype::int64);
  Caller at;
};
}  // namespace

TEST_CASE("the error for an index out of range while playing names the op and its source location") {
  Places p;
  const auto check = [&](const Var& y, const std::string& op) {
    CHECK(error_of_playing(p.tape, {y}, p.indices) == to_string(p.at) + ": " + op + ": " + stray);
  };
  const Var part = ones(p.tape, {2, 3}), whole = p.x + 1;
  p.at = Caller::here(), check(take(p.x, p.indices), "take");
  p.at = Caller::here(), check(index_add(p.x, 0, p.indices, part), "index_add");
  p.at = Caller::here(), check(take(whole, p.indices) * 2, "take");
  const Var tall = broadcast_to(reshape(concat({p.indices, p.indices}), {4, 1}), {4, 3});
  p.at = Caller::here(), check(gather(p.x, 0, tall), "gather");
  p.at = Caller::here(), check(scatter_add(p.x, 0, tall, ones_like(p.x)), "scatter_add");
}

TEST_CASE("the error for a target out of range names cross_entropy and its source location") {
  Tape tape;
  const Var logits = tape.parameter("logits", Array(Dtype::float32, {2, 5})),
            targets = tape.input("t", {2}, Dtype::int64);
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var loss = cross_entropy_sum(logits, targets).first;
  const std::string text =
      ": cross_entropy: target -1 (element 0) is neither in [0, 5), the classes of the logits, nor "
      "-100, the ignored one";
  CHECK(error_of_playing(tape, {loss}, targets) == to_string(at) + text);
  CHECK(error_of_playing(tape, grad(loss, {logits}), targets) == to_string(at) + text);
}

TEST_CASE("errors of a fused op name the user's op and its source location") {
  Tape tape;
  const Var x = tape.parameter("x", Array(Dtype::float32, {1030, 4}));
  const Var w = tape.parameter("w", Array(Dtype::float32, {8300, 4}));
  const Var targets = tape.input("targets", {1030}, Dtype::int64);
  const Var logits = einsum("bd,vd->bv", x, w);
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var loss = cross_entropy_sum(logits, targets).first;
  Vars outputs = grad(loss, {x, w});
  outputs.push_back(loss);
  Player player(tape, outputs);
  REQUIRE(steps(player, "product_cross_entropy") == 1);
  const Array wrong(xt::xarray<std::int64_t>(xt::ones<std::int64_t>({1030}) * 9000));
  CHECK(error_of([&] {
          player.play({{targets, wrong}});
        }) == to_string(at) +
                  ": cross_entropy: target 9000 (element 0) is neither in [0, 8300), the classes of the logits, nor "
                  "-100, the ignored one");
}

TEST_CASE("errors of an op that only a gradient plays name the forward op and its source location") {
  Places p;
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = take(p.x, p.indices);
  const Vars gradients = grad(y, {p.x}, {.sum_outputs = true});
  CHECK(error_of_playing(p.tape, gradients, p.indices) == to_string(at) + ": take: index_add: " + stray);
}

TEST_CASE("errors inside scans and checkpoints name the inner op and its source location, once") {
  Tape tape;
  const Var x = tape.parameter("x", Array(Dtype::float32, {4, 3}));
  const Var indices = tape.input("indices", {2}, Dtype::int64);
  Caller at;
  const ScanFunction cell = [&](const Vars& in, const Vars& states) {
    const Var index = in[0] + cast(sum(states[0]), Dtype::int64);
    at = Caller::here(__FILE__, __LINE__ + 1);
    const Var row = take(x, index);
    return std::make_pair(Vars{row}, Vars{row});
  };
  const Var stepped = scan(cell, {indices}, {zeros(tape, {3})}, ScanOptions{0, false, {}}).outputs[0];
  CHECK(error_of_playing(tape, {stepped}, indices) == to_string(at) + ": take: " + stray);
  const Vars inside = checkpoint(
      [&](const Vars& in) {
        at = Caller::here(__FILE__, __LINE__ + 1);
        return Vars{take(in[0], in[1])};
      },
      {x, indices});
  CHECK(error_of_playing(tape, inside, indices) == to_string(at) + ": take: " + stray);
  CHECK(error_of_playing(tape, grad(sum(inside[0] * inside[0]), {x}), indices) == to_string(at) + ": take: " + stray);
}

TEST_CASE("errors while playing also name locations in definitions") {
  Places p;
  const auto guard = p.tape.in_scope(std::make_shared<const Scope>(Scope{"h.0", "net.json, block 'embed'"}), 7);
  CHECK(error_of_playing(p.tape, {take(p.x, p.indices)}, p.indices) ==
        std::string("h.0 (net.json, block 'embed', line 7): take: ") + stray);
}

TEST_CASE("constant indices out of range are an error when the player is made") {
  Tape tape;
  const Var indices = tape.constant(xt::xarray<std::int64_t>{-1, 0}), x = tape.constant(Array(Dtype::float32, {4, 3}));
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = take(x, indices);
  CHECK(error_of([&] { Player(tape, {y}).play(); }) == to_string(at) + ": take: " + stray);
}

TEST_CASE("find_failure names the program's line") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = log(x);
  Player player(tape, {sum(y * y)});
  CHECK(to_string(find_failure(recorded_play(player, {{x, xt::xarray<float>{1, -2}}}))->failure) ==
        "NaN in #1 log -> float32 (2,)  at " + to_string(at));
}

TEST_CASE("an input that is fed twice is an error that names it") {
  Tape tape;
  const Var x = tape.input("x", {1}), unused = tape.input("unused", {1});
  const Var y = x + 1;
  Player player(tape, {y});
  const xt::xarray<float> one{1}, two{2};
  CHECK_THROWS_WITH_AS(player.play({{x, one}, {x, two}}), "play: input 'x' is fed twice", Error);
  CHECK_THROWS_WITH_AS(player.play({{unused, one}, {x, two}, {unused, one}}), "play: input 'unused' is fed twice",
                       Error);
  player.play({{x, two}, {unused, one}});
  CHECK(player.scalar(y) == 3);
}

TEST_CASE("a plan's buffers are named by the numbers and ops of the printed tape") {
  Tape tape;
  tanh(tape.input("unused", {2}));  // so that the played nodes have other numbers
  const Var x = tape.input("x", {2, 4}), w = tape.parameter("w", Array(Dtype::float32, {4, 4}));
  const Var hidden = tanh(matmul(x, w) + 1);
  const Var normal = layer_norm(hidden), hit = one_hot(argmax(normal), 4);
  const Var inside = checkpoint([](const Vars& in) { return Vars{exp(in[0]) * 2}; }, {normal})[0];
  const Var loss = sum(inside * hit);
  Vars outputs = grad(loss, {w});
  outputs.push_back(loss);
  std::ostringstream printed;
  printed << tape;
  for (const bool all : {false, true}) {
    PlayerOptions options;
    if (!all) options.passes = Passes::reference();
    const Player player(tape, outputs, options);
    std::size_t numbered = 0;
    for (const Plan::Buffer& buffer : player.plan().buffers) {
      const std::size_t at = buffer.name.find('#');
      if (at == std::string::npos) continue;
      const std::string label = "\n" + buffer.name.substr(at) + "(";
      CAPTURE(buffer.name);
      CHECK(printed.str().find(label) != std::string::npos);
      ++numbered;
    }
    CHECK(numbered > 3);
    const std::string result = "#" + std::to_string(loss.id().node) + " sum";
    CHECK(std::any_of(player.plan().buffers.begin(), player.plan().buffers.end(),
                      [&](const Plan::Buffer& buffer) { return buffer.name.find(result) != std::string::npos; }));
  }
}

}  // namespace places
