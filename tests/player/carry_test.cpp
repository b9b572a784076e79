// States that a player carries from play to play.
#include <doctest/doctest.h>

#include <cmath>

#include "xtape/inspect.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
Player carrying(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries, bool in_place = true) {
  PlayerOptions options;
  options.carries = carries;
  options.passes.in_place = in_place;
  return Player(tape, outputs, options);
}
}  // namespace

TEST_CASE("a state starts at zero, may be written, and becomes the output of each play") {
  for (const bool in_place : {true, false}) {
    Tape tape;
    const Var h = tape.input("h", {2});
    const Var x = tape.input("x", {2});
    const Var next = h * 0.5 + x;
    Player player = carrying(tape, {next}, {{h, next}}, in_place);
    const xt::xarray<float> ones = {1, 1};
    player.play({{x, ones}});
    CHECK(player.value<float>(next)(0) == 1);
    player.play({{x, ones}});
    CHECK(player.value<float>(next)(0) == 1.5f);
    CHECK(player.carried(h).as<float>()[0] == 1.5f);
    player.carried(h).as<float>()[1] = 10;
    player.play({{x, ones}});
    CHECK(player.value<float>(next)(0) == 1.75f);
    CHECK(player.value<float>(next)(1) == 6);
  }
}

TEST_CASE("two states that are swapped, and a state that is read after its next value is computed") {
  Tape tape;
  const Var a = tape.input("a", {2});
  const Var b = tape.input("b", {2});
  const Var seen = a - b;
  Player player = carrying(tape, {seen, a}, {{a, b}, {b, a}});
  player.carried(a).as<float>()[0] = 3;
  player.carried(b).as<float>()[0] = 1;
  for (int i = 0; i < 4; ++i) {
    player.play();
    CHECK(player.value<float>(seen)(0) == (i % 2 == 0 ? 2 : -2));
    CHECK(player.value<float>(a)(0) == (i % 2 == 0 ? 3 : 1));
  }
  Tape late;
  const Var h = late.input("h", {2});
  const Var next = h + 1.0;
  const Var difference = next - h;  // h is read after `next` is computed
  const Var old = reshape(h, {1, 2});
  Player reader = carrying(late, {difference, old}, {{h, next}});
  for (int i = 0; i < 3; ++i) {
    reader.play();
    CHECK(reader.value<float>(difference)(0) == 1);
    CHECK(reader.value<float>(old)(0, 0) == static_cast<float>(i));
  }
}

TEST_CASE("two states with one next value, a delay line, and a transposed state") {
  Tape tape;
  const Var a = tape.input("a", {2, 2});
  const Var b = tape.input("b", {2, 2});
  const Var c = tape.input("c", {2, 2});
  const Var next = (a + 1.0) * 1.0;
  const Var turned = transpose(c) + 0.0 * b;
  Player player = carrying(tape, {next + b}, {{a, next}, {b, a}, {c, turned}});
  player.carried(c).as<float>()[1] = 5;
  for (int i = 1; i < 5; ++i) {
    player.play();
    CHECK(player.carried(a).as<float>()[0] == static_cast<float>(i));
    CHECK(player.carried(b).as<float>()[0] == static_cast<float>(i - 1));
    CHECK(player.carried(c).as<float>()[i % 2 == 0 ? 1 : 2] == 5);
  }
  Player view = carrying(tape, {c}, {{c, transpose(c)}});
  view.carried(c).as<float>()[1] = 5;
  view.play();
  CHECK(view.carried(c).as<float>()[2] == 5);
  CHECK(view.carried(c).as<float>()[1] == 0);
}

TEST_CASE("a state's input may be recorded after the next value of another") {
  Tape tape;
  const Var a = tape.input("a", {2});
  const Var next_a = a + 1.0;
  const Var b = tape.input("b", {2});
  const Var next_b = b + next_a;
  Player player = carrying(tape, {next_b}, {{b, next_b}, {a, next_a}});
  for (int i = 0; i < 3; ++i) player.play();
  CHECK(player.carried(a).as<float>()[0] == 3);
  CHECK(player.carried(b).as<float>()[0] == 6);
}

TEST_CASE("two players share a state whose memory the caller provides") {
  Array memory(Dtype::float32, {4});
  Array first = memory.first({2});
  CHECK(first.data() == memory.data());
  CHECK_THROWS_AS(memory.first({5}), ShapeError);
  Tape tape;
  const Var h = tape.input("h", {2});
  const Var plus = h + 1.0;
  const Var twice = h * 2.0;
  Player adds = carrying(tape, {plus}, {{h, plus, first}});
  Player doubles = carrying(tape, {twice}, {{h, twice, first}});
  adds.play();
  doubles.play();
  adds.play();
  CHECK(memory.as<float>()[0] == 3);
  CHECK(memory.as<float>()[2] == 0);
  CHECK(!find_failure(recorded_play(adds, {})));
  CHECK(memory.as<float>()[0] == 3);
  CHECK_THROWS_WITH_AS(carrying(tape, {plus}, {{h, plus, memory}}),
                       "the memory of carry 'h' must be float32 (2,), got float32 (4,)", ShapeError);
}

TEST_CASE("invalid carries are refused") {
  Tape tape;
  Tape other;
  const Var h = tape.input("h", {2});
  const Var x = tape.input("x", {3});
  const Var y = h + 1.0;
  const Var foreign = other.input("h", {2});
  const xt::xarray<float> two = {1, 2};
  CHECK_THROWS_WITH_AS(carrying(tape, {y}, {{y, y}}), "a carry's first var must be an input of the tape", Error);
  CHECK_THROWS_WITH_AS(carrying(tape, {y}, {{x, y}}),
                       "a carry's vars must have one type, got float32 (3,) and float32 (2,)", ShapeError);
  CHECK_THROWS_WITH_AS(carrying(tape, {y}, {{h, y}, {h, y}}), "input 'h' is carried twice", Error);
  CHECK_THROWS_AS(carrying(tape, {y}, {{foreign, foreign}}), HandleError);
  Player player = carrying(tape, {y}, {{h, y}});
  CHECK_THROWS_WITH_AS(player.play({{h, two}}),
                       "play: input 'h' is carried from play to play and cannot be fed: write to carried()", Error);
  CHECK_THROWS_AS(player.carried(foreign), HandleError);
  CHECK_THROWS_AS(player.carried(x), Error);
}

TEST_CASE("find_failure starts from the present states") {
  Tape tape;
  const Var h = tape.input("h", {2});
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var next = sqrt(h);
  Player player = carrying(tape, {next}, {{h, next}});
  CHECK(!find_failure(recorded_play(player, {})));
  player.carried(h).as<float>()[1] = -1;
  CHECK(to_string(find_failure(recorded_play(player, {}))->failure) ==
        "NaN in #1 sqrt -> float32 (2,)  at " + to_string(at));
  CHECK(player.carried(h).as<float>()[1] == -1);
}
