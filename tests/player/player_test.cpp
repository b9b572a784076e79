// Playing: feeds, views, carries, threads, memory.
#include "xtape/player.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "allocations.hpp"
#include "base/system/usable_cores.hpp"
#include "needs.hpp"
#include "xtape/grad.hpp"
#include "xtape/inspect.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"
#include "xview.hpp"

namespace players {

using namespace xtape;

namespace {
using Matrix = xt::xarray<float>;

Matrix counting(std::int64_t rows, std::int64_t columns) {
  Matrix matrix = Matrix::from_shape({static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)});
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = 0.01f * static_cast<float>(i % 201) - 1.f;
  return matrix;
}

/// A loss with reductions, broadcasts, dropout and views, large enough for threads.
struct Work {
  Tape tape;
  Var x = tape.input("x", {64, 1000});
  Var w = tape.parameter("w", counting(1000, 64));
  Var loss, dx, dw;

  Work() {
    const Var h = dropout(tanh(x * transpose(w) + mean(x, {0}, true)), 0.1);
    loss = mean(square(softmax(h) - sigmoid(h)));
    const Vars gradients = grad(loss, {x, w});
    dx = gradients[0];
    dw = gradients[1];
  }
  Player player(int threads) const {
    PlayerOptions options;
    options.threads = threads;
    options.seed = 3;
    return Player(tape, {loss, dx, dw}, options);
  }
};

bool equal_bytes(const ArrayView& a, const ArrayView& b) {
  const Array first(a), second(b);
  return first.bytes() == second.bytes() && std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}
}  // namespace

TEST_CASE("playing allocates nothing" * needs_no_sanitizer()) {
  const Work work;
  Player player = work.player(2);
  const Matrix x = counting(64, 1000);
  for (int i = 0; i < 3; ++i) player.play({{work.x, x}}, 1);  // the helpers start once
  const AllocationCount allocations;
  for (std::uint64_t step = 0; step < 5; ++step) player.play({{work.x, x}}, step);
  const std::int64_t made = allocations.count();
  CHECK(made == 0);
}

TEST_CASE("one, two and three threads give the same bits") {
  const Work work;
  const Matrix x = counting(64, 1000);
  Player one = work.player(1);
  one.play({{work.x, x}}, 9);
  for (int threads : {2, 3}) {
    Player more = work.player(threads);
    CHECK(more.threads() == threads);
    more.play({{work.x, x}}, 9);
    for (const Var& output : {work.loss, work.dx, work.dw}) CHECK(equal_bytes(one.view(output), more.view(output)));
  }
}

TEST_CASE("two tapes in two threads at once") {
  const Matrix x = counting(64, 1000);
  const Work truth;
  Player expected = truth.player(1);
  expected.play({{truth.x, x}}, 2);
  const float loss = expected.value<float>(truth.loss)();
  float found[2] = {};
  const auto run = [&](int place) {
    const Work work;
    Player player = work.player(2);
    for (int i = 0; i < 3; ++i) player.play({{work.x, x}}, 2);
    found[place] = player.value<float>(work.loss)();
  };
  std::thread first(run, 0), second(run, 1);
  first.join();
  second.join();
  for (float each : found) CHECK(each == loss);
}

TEST_CASE("without an option, a player has the default number of threads") {
  const Work work;
  CHECK(Player(work.tape, {work.loss}).threads() == default_threads().count);
}

TEST_CASE("plan: its counts are known before anything runs") {
  const Work work;
  const Plan all = Player(work.tape, {work.loss, work.dx, work.dw}).plan();
  std::size_t outputs = 0, parameters = 0, arena_end = 0, arena_sum = 0;
  for (const Plan::Buffer& buffer : all.buffers) {
    if (buffer.kind == "output") outputs += buffer.bytes;
    if (buffer.kind == "parameter") parameters += buffer.bytes;
    if (buffer.kind != "arena") continue;
    CHECK(buffer.first <= buffer.last);
    CHECK(buffer.last < static_cast<int>(all.steps.size()));
    arena_end = std::max(arena_end, buffer.offset + buffer.bytes);
    arena_sum += buffer.bytes;
  }
  CHECK(all.output_bytes == outputs);
  CHECK(outputs >= 2 * 64000 * 4 + 4);
  CHECK(parameters == 64000 * 4);
  CHECK(all.parameter_bytes == parameters);
  CHECK(arena_sum > 0);
  CHECK(arena_end <= all.arena_bytes);
  CHECK(all.arena_bytes <= arena_sum + 64 * all.buffers.size());
  CHECK(all.peak_bytes() == all.arena_bytes + all.output_bytes + all.constant_bytes + all.parameter_bytes);
  PlayerOptions plain;
  plain.passes.reuse = plain.passes.in_place = false;
  CHECK(Player(work.tape, {work.loss, work.dx, work.dw}, plain).plan().arena_bytes > all.arena_bytes);
  std::ostringstream text;
  text << all;
  CHECK(text.str().find(" steps; peak ") != std::string::npos);
  CHECK(text.str().find("parameter w: 256000 bytes") != std::string::npos);
}

TEST_CASE("plan: the cost of steps") {
  Tape tape;
  const Var a = tape.input("a", {3, 5, 7});
  const Var b = tape.input("b", {7, 11});
  const Var row = tape.input("row", {11});
  const Var table = tape.input("table", {1000, 4});
  const Var places = tape.input("places", {6}, Dtype::int64);
  const Var product = einsum("bik,kj->bij", {a, b});
  const Var chain = tanh(product + row);
  const Var picked = take(table, places, 0);
  const Plan plan = Player(tape, {chain, picked}).plan();
  const auto cost = [&](const std::string& op) {
    for (const Plan::Step& step : plan.steps)
      if (step.op == op) return std::pair{step.flops, step.bytes};
    return std::pair{-1.0, -1.0};
  };
  CHECK(cost("einsum") == std::pair{2.0 * 3 * 5 * 7 * 11, 4.0 * (105 + 77 + 165)});
  CHECK(cost("add+tanh") == std::pair{0.0, 4.0 * (165 + 11 + 165)});
  CHECK(cost("take") == std::pair{0.0, 4.0 * 24 + 8.0 * 6 + 4.0 * 24});  // only the rows of the table that are read
}

TEST_CASE("plan: the cost of a scan is that of its steps") {
  Tape tape;
  const Var xs = tape.input("xs", {9, 2, 4});
  const Var w = tape.input("w", {4, 4});
  const ScanFunction cell = [&](const Vars& x, const Vars& h) {
    const Var next = tanh(matmul(h[0], w) + x[0]);
    return std::pair<Vars, Vars>{{next}, {next}};
  };
  ScanOptions options;
  options.axis = 0;
  const Scanned scanned = scan(cell, {xs}, {zeros(tape, {2, 4}, Dtype::float32)}, options);
  const Plan plan = Player(tape, {scanned.outputs[0]}).plan();
  double flops = 0;
  for (const Plan::Step& step : plan.steps) flops += step.flops;
  CHECK(flops == 9 * 2.0 * 2 * 4 * 4);
}

TEST_CASE("a profile counts its plays and can be reset") {
  const Work work;
  PlayerOptions options;
  options.profile = true;
  Player player(work.tape, {work.loss}, options);
  const Matrix x = counting(64, 1000);
  for (int i = 0; i < 3; ++i) player.play({{work.x, x}});
  CHECK(player.measured() == 3);
  REQUIRE(player.seconds().size() == player.plan().steps.size());
  CHECK(*std::max_element(player.seconds().begin(), player.seconds().end()) > 0);
  player.forget_seconds();
  CHECK(player.measured() == 0);
  CHECK(*std::max_element(player.seconds().begin(), player.seconds().end()) == 0);
  CHECK(work.player(1).measured() == 0);
}

TEST_CASE("views of values stay as they are until the next play") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Var t = transpose(x);
  const Var y = t * 2.0;
  Player player(tape, {y, t, x});
  CHECK_THROWS_WITH_AS(player.view(y), "the player has not played yet", Error);
  Matrix fed = {{1, 2, 3}, {4, 5, 6}};
  player.play({{x, fed}});
  const ArrayView seen = player.view(y), turned = player.view(t), given = player.view(x);
  fed.fill(0);
  CHECK(seen.to<float>()(2, 1) == 12);
  CHECK(turned.to<float>()(2, 1) == 6);
  CHECK(given.to<float>()(1, 2) == 6);
  player.play({{x, fed}});
  CHECK(seen.to<float>()(2, 1) == 0);
}

TEST_CASE("feeds that are missing, invalid or of another tape are refused") {
  Tape tape, other;
  const Var x = tape.input("x", {2});
  const Var y = tape.input("y", {2});
  const Var unused = tape.input("unused", {1});
  const Var z = x + y;
  const Var foreign = other.input("x", {2});
  Player player(tape, {z});
  const xt::xarray<float> two = {1, 2}, three = {1, 2, 3}, one = {1};
  const xt::xarray<double> doubles = {1, 2};
  CHECK_THROWS_WITH_AS(player.play({{x, two}}), "play: input 'y' (float32 (2,)) is not fed", Error);
  CHECK_THROWS_WITH_AS(player.play({{x, three}, {y, two}}), "play: input 'x' is float32 (2,), fed with float32 (3,)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(player.play({{x, doubles}, {y, two}}), "play: input 'x' is float32 (2,), fed with float64 (2,)",
                       DtypeError);
  CHECK_THROWS_WITH_AS(player.play({{foreign, two}, {y, two}}), "play: a feed's var belongs to another tape",
                       HandleError);
  CHECK_THROWS_WITH_AS(player.play({{z, two}}), "play: only inputs can be fed, not the output of add", Error);
  player.play({{x, two}, {y, two}, {unused, one}});
  CHECK(player.value<float>(z)(1) == 4);
  CHECK_THROWS_AS(player.view(foreign), HandleError);
  CHECK_THROWS_WITH_AS(player.view(x), "this var (#0 input) is not an output of the player: add it to the outputs",
                       Error);
  CHECK_THROWS_AS(player.value<double>(z), DtypeError);
  CHECK_THROWS_AS(player.scalar(z), ShapeError);
  CHECK_THROWS_AS(Player(tape, {foreign}), HandleError);
  CHECK_THROWS_AS(Player(tape, {}), Error);
  CHECK_THROWS_AS(Player(tape, {Var()}), HandleError);
}

TEST_CASE("feeds of any layout") {
  Tape tape;
  const Var x = tape.input("x", {3, 2});
  const Var y = x * 1.0;
  Player player(tape, {y});
  const Matrix source = counting(4, 6);
  const auto part = xt::view(source, xt::range(1, 4), xt::range(0, 6, 3));
  player.play({{x, part}});
  CHECK((player.value<float>(y) == Matrix(part)));
  const xt::xarray<float, xt::layout_type::column_major> columns = part;
  player.play({{x, columns}});
  CHECK((player.value<float>(y) == Matrix(part)));
  std::vector<float> memory = {1, 2, 3, 4, 5, 6};
  const auto adapted = xt::adapt(memory, std::vector<std::size_t>{3, 2});
  player.play({{x, adapted}});
  CHECK(player.value<float>(y)(2, 0) == 5);
}

TEST_CASE("arrays without elements") {
  Tape tape;
  const Var x = tape.input("x", {3, 0});
  const Var w = tape.parameter("w", Array(Dtype::float32, {0}));
  const Var y = exp(x) * w;
  const Var total = sum(y);
  const Var row = mean(sum(y, {0}) + 1.0, {}, true);
  const Vars gradients = grad(total, {x, w});
  for (const Passes& passes : {Passes(), Passes::reference()}) {
    PlayerOptions options;
    options.passes = passes;
    Player player(tape, {y, total, gradients[0], gradients[1], row, x}, options);
    player.play({{x, Matrix::from_shape({3, 0})}});
    CHECK(player.scalar(total) == 0);
    CHECK(player.view(y).shape() == Shape{3, 0});
    CHECK(player.view(gradients[1]).shape() == Shape{0});
  }
}

TEST_CASE("a shared arena serves players in turn") {
  const Work a, b;
  PlayerOptions options;
  options.arena = make_arena();
  options.seed = 3;
  Player first(a.tape, {a.loss}, options);
  Player second(b.tape, {b.loss, b.dx, b.dw}, options);  // needs more: the arena grows while the first player uses it
  const Matrix x = counting(64, 1000);
  first.play({{a.x, x}}, 0);
  const float loss = first.value<float>(a.loss)();
  second.play({{b.x, x}}, 0);
  CHECK(second.value<float>(b.loss)() == loss);
  CHECK(first.value<float>(a.loss)() == loss);
  first.play({{a.x, x}}, 0);
  CHECK(first.value<float>(a.loss)() == loss);
}

TEST_CASE("players move, and later growth of the tape does not matter") {
  Tape tape;
  const Var x = tape.input("x", {2});
  Var y = x * 2.0;
  Player player(tape, {y});
  const xt::xarray<float> values = {1, 2};
  for (int i = 0; i < 1000; ++i) tanh(x);
  player.play({{x, values}});
  Player moved = std::move(player);
  CHECK(moved.value<float>(y)(1) == 4);
  moved.play({{x, values}});
  player = Player(tape, {x + y});
  player = std::move(moved);
  CHECK(player.value<float>(y)(0) == 2);
  tape = Tape();  // the player keeps the nodes alive
  player.play({{x, values}});
  CHECK(player.value<float>(y)(0) == 2);
}

TEST_CASE("parameters are read where their store holds them") {
  Tape tape;
  Array w(Dtype::float32, {2});
  const Var y = tape.parameter("w", w) * 2.0;
  Player player(tape, {y});
  player.play();
  CHECK(player.value<float>(y)(1) == 0);
  w.as<float>()[1] = 4;
  player.play();
  CHECK(player.value<float>(y)(1) == 8);
}

TEST_CASE("evaluate plays once, by the reference path") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var y = softmax(x);
  const xt::xarray<float> values = {0, 0};
  CHECK(value<float>(y, {{x, values}})(0) == doctest::Approx(0.5));
  CHECK(evaluate(tape.constant(2.5, Dtype::float64)).as<double>()[0] == 2.5);
  CHECK_THROWS_AS(evaluate(y), Error);
}

TEST_CASE("find_failure names the op and the site") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var masked = masked_fill(x, x > 5.0, -std::numeric_limits<double>::infinity());
  const Var soft = sum(softmax(masked));
  Var y;
  {
    const auto scope = tape.in_scope(std::make_shared<const Scope>(Scope{"h.1", "net.json, block 'norm'"}), 12);
    y = soft + sum(log(x));
  }
  Player player(tape, {y * y});
  const xt::xarray<float> fine = {1, 2}, wrong = {1, -2}, masking = {1, 6};
  CHECK(!find_failure(recorded_play(player, {{x, fine}})));
  CHECK(to_string(find_failure(recorded_play(player, {{x, wrong}}))->failure) ==
        "NaN in #6 log -> float32 (2,)  at h.1 (net.json, block 'norm', line 12)");
  CHECK(!find_failure(recorded_play(player, {{x, masking}})));
}

}  // namespace players
