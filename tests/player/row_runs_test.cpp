// Scans whose threads compute all steps of some rows: the bits are those of one thread.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "player/program/passes.hpp"
#include "player/run/body_kernels.hpp"
#include "recurrences.hpp"
#include "same_bits.hpp"
#include "xtape/nn.hpp"
#include "xtape/player.hpp"
#include "xtape/team_profile.hpp"

using namespace xtape;

namespace {
constexpr std::int64_t n = 64;  // rows, and their elements

struct Played {
  std::vector<Array> outputs;
  std::int64_t loops = 0;  // parallel loops of all scans
};

/// Plays on a simulated team, whose threads compute their pieces one after the other. A piece that reads what another
/// one writes therefore always gives other bits.
Played played(const Tape& tape, const Vars& outputs, int threads) {
  PlayerOptions options;
  options.threads = threads;
  Player player(tape, outputs, options);
  const TeamProfile team(TeamMachine{.threads = threads});
  player.play();
  Played found;
  for (const Var& output : outputs) found.outputs.emplace_back(player.view(output));
  for (const TeamWork& work : team.works())
    if (work.op == "scan") found.loops += work.loops;
  return found;
}

void check_bits(const Tape& tape, const Vars& outputs) {
  const Played one = played(tape, outputs, 1);
  for (const int threads : {2, 7, 16, 64, 100}) {
    CAPTURE(threads);
    const Played many = played(tape, outputs, threads);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(many.outputs[i], one.outputs[i]));
    }
  }
}

Var given(const Tape& tape, const Shape& shape, int seed) {
  Tape recorded = tape;
  return cast(recorded.constant(Array(numbers(shape, seed))), Dtype::float32);
}

using Cell = Vars (*)(const Var& x, const Vars& states);
}  // namespace

TEST_CASE("rows: recurrent layers have the bits of one thread, and their scans no loop for each step") {
  for (const bool reverse : {false, true})
    for (const bool padded : {false, true})
      for (const std::string kind : {"rnn", "lstm", "gru"}) {
        CAPTURE(kind);
        CAPTURE(padded);
        const auto record = [&](std::int64_t length) {
          Tape tape;
          const Parameters p(tape, 1);
          const Var x = given(tape, {n, length, 8}, 1);
          nn::RecurrentOptions options;
          options.reverse = reverse;
          if (padded) options.valid = 12 * iota(tape, {n, length}, 1) <= iota(tape, {n, length}, 0);
          const auto layer = kind == "rnn" ? nn::rnn : kind == "lstm" ? nn::lstm : nn::gru;
          nn::Recurrence found = layer(p, x, n, options);
          Vars outputs{found.outputs, found.states[0]};
          const Var loss = sum(sin(found.outputs)) + sum(square(found.states[0]));
          for (const Var& gradient : grad(loss, {x}, {.materialize_grads = true})) outputs.push_back(gradient);
          return std::pair{tape, outputs};
        };
        const auto [tape, outputs] = record(6);
        check_bits(tape, outputs);
        const auto [longer, of_longer] = record(12);
        CHECK(played(tape, outputs, 4).loops == played(longer, of_longer, 4).loops);
      }
}

TEST_CASE("rows: bodies whose rows depend on other rows have the bits of one thread") {
  const std::vector<std::pair<std::string, Cell>> cells = {
      {"transposed",
       [](const Var& x, const Vars& s) {
         return Vars{tanh(transpose(s[0], {1, 0}) + x), s[0] * x};
       }},
      {"swapped",
       [](const Var& x, const Vars& s) {
         return Vars{s[1], tanh(s[0] + x)};
       }},
      {"summed over rows",
       [](const Var& x, const Vars& s) {
         return Vars{tanh(s[0] - sum(s[1], {0}) / n), s[1] * x};
       }},
      {"multiplied by itself",
       [](const Var& x, const Vars& s) {
         return Vars{tanh(matmul(s[0], s[0]) + x), s[0]};
       }},
      {"the row below",
       [](const Var& x, const Vars& s) {
         const Var both = concat({tanh(s[0] + x), sin(s[1])}, 0);  // [2n, n]
         return Vars{slice(both, {1}, {n + 1}) / 2, slice(both, {n - 1}, {2 * n - 1})};
       }},
      {"reversed",
       [](const Var& x, const Vars& s) {
         return Vars{tanh(flip(s[0], {0}) + x), s[1] + s[0]};
       }},
      {"one row for all",
       [](const Var& x, const Vars& s) {
         return Vars{tanh(s[1] * x + slice(s[1], {0}, {1})), s[0] + x};
       }},
      {"each row by itself",
       [](const Var& x, const Vars& s) {
         return Vars{tanh(s[0] + x) * s[1], cos(s[1] - x) + slice(s[0], {0, 1}, {n, 2})};
       }},
  };
  for (const auto& each : cells)
    for (const std::int64_t axis : {0, 1}) {
      CAPTURE(each.first);
      CAPTURE(axis);
      Tape tape;
      const Var x = given(tape, axis == 0 ? Shape{5, n, n} : Shape{n, 5, n}, 1);
      ScanOptions options;
      options.axis = axis;
      const auto step = [&](const Vars& inputs, const Vars& states) {
        const Vars next = each.second(inputs[0], states);
        return std::pair{Vars{next[0], next[1] * inputs[0]}, next};
      };
      const Scanned result = scan(step, {x}, {given(tape, {n, n}, 2), given(tape, {n, n}, 3)}, options);
      Vars outputs = result.outputs;
      outputs.insert(outputs.end(), result.states.begin(), result.states.end());
      outputs.push_back(grad(sum(sin(outputs[0])) + sum(outputs[2] * outputs[3]), {x})[0]);
      check_bits(tape, outputs);
    }
}

TEST_CASE("rows: the buffers of a run do not share memory") {
  Tape body;
  Var y = body.input("x", {n, 512});
  for (const std::int64_t width : {256, 128, 64, 32})  // each is read once, by the next one
    y = tanh(slice(y, {0, 0}, {n, width}) * slice(y, {0, width}, {n, 2 * width}));
  const PlayerOptions options;
  const auto planned = [&](std::int64_t times) {
    ExternalBuffers outside;
    outside.times = times;
    return plan(optimised(body, {y}, options), options, 2, body_kernels(), outside);
  };
  const PlannedProgram by_steps = planned(0), by_rows = planned(100);
  CHECK(by_steps.row_runs.empty());
  REQUIRE(by_rows.row_runs.size() == 1);
  CHECK(by_rows.row_runs[0].steps == 4);
  CHECK(by_rows.row_runs[0].rows == n);
  CHECK(by_rows.arena_bytes > by_steps.arena_bytes);
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const Buffer& buffer : by_rows.buffers)
    if (buffer.kind == BufferKind::arena && buffer.first >= 0)
      places.emplace_back(buffer.offset, buffer.offset + buffer.bytes);
  std::ranges::sort(places);
  REQUIRE(places.size() >= 3);
  for (std::size_t i = 1; i < places.size(); ++i) CHECK(places[i - 1].second <= places[i].first);
}
