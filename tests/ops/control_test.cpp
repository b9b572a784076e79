#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op stop_gradient: the value passes, the gradient does not") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{2, 3});
  const Var y = x * stop_gradient(x);
  CHECK(fast(y).to<float>() == xt::xarray<float>{4, 9});
  CHECK(fast(grad(sum(y), {x})[0]).to<float>() == xt::xarray<float>{2, 3});
  CHECK(fast(grad(sum(stop_gradient(x)), {x}, {.materialize_grads = true})[0]).to<float>() == xt::xarray<float>{0, 0});
}

TEST_CASE("op watch: x where the condition holds, an error with line and index elsewhere") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = watch(x, x < 5);
  Player player(tape, {y});
  const xt::xarray<float> fine{{1, 2, 3}, {4, -5, 0}}, wrong{{1, 2, 3}, {4, 6, 7}};
  player.play({{x, fine}});
  CHECK(player.view(y).to<float>() == fine);
  CHECK_THROWS_WITH_AS(player.play({{x, wrong}}), (to_string(at) + ": watch: the condition is false at [1, 1]").c_str(),
                       Error);
  player.play({{x, fine}});
  CHECK(player.view(y).to<float>() == fine);
  CHECK_THROWS_AS(watch(x, x), DtypeError);
  const xt::xarray<double> points{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}};
  check_gradients_on([](const Var& v) { return watch(v * v, sum(v) < 100); }, points);
  const xt::xarray<float> none = xt::xarray<float>::from_shape({0, 2});
  CHECK(played_on<float>([](const Vars& v) { return watch(v[0], v[0] > 0); }, {none}).shape() == Shape{0, 2});
}

TEST_CASE("op cache: gives its argument unless that has a past") {
  for (Mode mode : {Mode::train, Mode::eval, Mode::predict}) {
    Tape tape(mode);
    const Var x = tape.parameter("x", listed<float>({2, 3}));
    CHECK(cache(x, 0).id() == x.id());
    CHECK_THROWS_AS(cache(x, 2), ShapeError);
  }
  Tape tape(Mode::predict);
  const Var tokens = tape.input("tokens", {2, 3}, Dtype::int64);
  const Var source = tape.input("source", {2, 3});
  tape.set_past(tokens, tape.input("past", {2}, Dtype::int64), 8);
  CHECK(cache(source).id() == source.id());  // it does not depend on the tokens
  CHECK(tape.states().empty());
  CHECK_THROWS_WITH_AS(cache(tokens, 0),
                       "cache: axis 0 is the axis of the rows: the pieces must follow one another along another axis",
                       ShapeError);
  CHECK(tape.states().empty());
  const Var kept = cache(tokens);
  CHECK(kept.type() == ValueType{Dtype::int64, {2, 8}});
  REQUIRE(tape.states().size() == 1);
  CHECK(tape.states()[0].output.id() == kept.id());
  CHECK(tape.states()[0].input.type() == kept.type());
  CHECK(cache(cast(tokens, Dtype::float32) * source).type() == ValueType{Dtype::float32, {2, 8}});
  CHECK(tape.states().size() == 2);
  const std::size_t before = tape.size();
  const Var half = checkpoint([](const Vars& v) { return Vars{cache(v[0])}; }, {tokens})[0];
  CHECK(half.node().op->name == "cache");
  CHECK(tape.states().size() == 3);
  tape.truncate(before);
  CHECK(tape.states().size() == 2);
}

TEST_CASE("op cache: a piece is written in place after its row's past, and never beyond the capacity") {
  for (const bool in_place : {true, false}) {
    Tape tape(Mode::predict);
    const Var x = tape.input("x", {3, 2, 2, 1});  // pieces of two along axis 2
    const Var past = tape.input("past", {3}, Dtype::int64);
    tape.set_past(x, past, 4);
    const Caller at = Caller::here(__FILE__, __LINE__ + 1);
    const Var whole = cache(x, 2);
    PlayerOptions options;
    options.carries = tape.states();
    options.passes.in_place = in_place;
    Player player(tape, {whole}, options);
    if (in_place) CHECK(player.plan().steps.size() == 1);  // no copy of the state
    xt::xarray<float> piece = xt::ones<float>({3, 2, 2, 1});
    xt::xarray<float> wanted = xt::zeros<float>({3, 2, 4, 1});
    for (const std::vector<std::int64_t>& places : {std::vector<std::int64_t>{0, 2, 3}, {1, 0, 4}, {2, 9, 0}}) {
      for (std::size_t row = 0; row < 3; ++row)
        for (std::size_t head = 0; head < 2; ++head)
          for (std::size_t i = 0; i < 2; ++i) {
            piece(row, head, i, 0) += static_cast<float>(100 * row + 10 * head + i);
            const std::size_t place = static_cast<std::size_t>(places[row]) + i;
            if (place < 4) wanted(row, head, place, 0) = piece(row, head, i, 0);
          }
      player.play({{x, piece}, {past, xt::xarray<std::int64_t>{places[0], places[1], places[2]}}});
      CHECK(player.value<float>(whole) == wanted);
      CHECK(player.carried(tape.states()[0].input).to<float>() == wanted);
    }
    CHECK_THROWS_WITH_AS(player.play({{x, piece}, {past, xt::xarray<std::int64_t>{0, -1, 0}}}),
                         (to_string(at) + ": cache: row 1 cannot have a past of -1 positions").c_str(), Error);
  }
}

TEST_CASE("op cache: in Q8_0, floats with whole blocks are rounded, and other values are not") {
  Tape tape(Mode::predict);
  const Var x = tape.input("x", {2, 1, 64}), past = tape.input("past", {2}, Dtype::int64);
  tape.set_past(x, past, 4, Dtype::q8_0);
  const Var whole = cache(x);
  cache(slice(x, {0, 0, 0}, {2, 1, 40}));
  cache(x > 0);
  CHECK(whole.type() == ValueType{Dtype::float32, {2, 4, 64}});
  CHECK(tape.states()[0].input.type() == ValueType{Dtype::q8_0, {2, 4, 64}});
  CHECK(tape.states()[1].input.type() == ValueType{Dtype::float32, {2, 4, 40}});
  CHECK(tape.states()[2].input.type() == ValueType{Dtype::boolean, {2, 4, 64}});
  PlayerOptions options;
  options.carries = tape.states();
  Player player(tape, {whole}, options);
  xt::xarray<float> piece = xt::zeros<float>({2, 1, 64}), wanted = xt::zeros<float>({2, 4, 64});
  for (const std::int64_t place : {0, 1, 3}) {
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t i = 0; i < 64; ++i) {
        const int number = static_cast<int>((7 * i + row) % 255) - 127;  // one of each block is 127 or -127
        piece(row, 0, i) = wanted(row, static_cast<std::size_t>(place), i) =
            0.5F * static_cast<float>(i % 32 == 3 ? 127 : number);
      }
    player.play({{x, piece}, {past, xt::xarray<std::int64_t>{place, place}}});
    CHECK(player.value<float>(whole) == wanted);
  }
  piece(1, 0, 40) = std::numeric_limits<float>::quiet_NaN();
  piece(0, 0, 2) = std::numeric_limits<float>::infinity();
  player.play({{x, piece}, {past, xt::xarray<std::int64_t>{2, 2}}});
  const xt::xarray<float> odd = player.value<float>(whole);
  CHECK(std::isnan(odd(1, 2, 33)));  // the whole block
  CHECK(std::isnan(odd(0, 2, 31)));
  CHECK(!std::isnan(odd(1, 2, 31)));
  piece.fill(0);
  piece(0, 0, 2) = 8.3e6F;
  piece(1, 0, 2) = 8.4e6F;  // its scale is no number of float16
  player.play({{x, piece}, {past, xt::xarray<std::int64_t>{2, 2}}});
  const xt::xarray<float> large = player.value<float>(whole);
  CHECK(large(0, 2, 2) == doctest::Approx(8.3e6).epsilon(0.01));
  CHECK(large(0, 2, 3) == 0);
  CHECK(std::isnan(large(1, 2, 2)));
  CHECK(std::isnan(large(1, 2, 3)));
  CHECK(large(1, 2, 40) == 0);
  CHECK_THROWS_WITH_AS(Tape(Mode::predict).set_past(x, past, 4), "set_past: its vars must be of this tape",
                       HandleError);
  Tape other(Mode::predict);
  const Var y = other.input("x", {2, 1, 64}), before = other.input("past", {2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(other.set_past(y, before, 4, Dtype::q4_k), "caches are stored as float32 or Q8_0, not Q4_K",
                       DtypeError);
}

TEST_CASE("op cache: with a state and a past given by the caller") {
  const Op& row = builtin_ops().at("cache");
  Tape tape;
  const Var x = reshape(tape.constant(xt::xarray<float>{5, 6}), {2, 1});
  const Var state = tape.constant(xt::xarray<float>{{1, 2, 3}, {1, 2, 3}});
  const Var past = tape.constant(xt::xarray<std::int64_t>{2, 0});
  CHECK(fast(apply(row, {x, state, past})[0]).to<float>() == xt::xarray<float>{{1, 2, 5}, {6, 2, 3}});
  CHECK_THROWS_WITH_AS(apply(row, {x, state}), "cache: takes x alone, or x with a state and a past", Error);
  CHECK_THROWS_AS(apply(row, {x, past, past}), ShapeError);
  CHECK_THROWS_AS(apply(row, {x, state, tape.constant(xt::xarray<std::int64_t>{2})}), ShapeError);
  CHECK_THROWS_AS(apply(row, {x, transpose(state), past}), ShapeError);
}
