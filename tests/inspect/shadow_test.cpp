// The float64 shadow finds the calls that add to the rounding error.
#include <algorithm>
#include <cmath>
#include <functional>

#include "play.hpp"
#include "xtape/inspect.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
struct Cancellation {
  std::string name;
  std::function<double(std::int64_t i)> x;  ///< The elements of the input x, float32 (8, 64).
  /// Records the tape, and stores the line of the call that cancels.
  std::function<Var(const Var& x, int& line)> record;
};

double wave(std::int64_t i) {
  return std::sin(0.7 * static_cast<double>(i));
}

#define CANCELS(y) \
  (y);             \
  line = __LINE__

const std::vector<Cancellation>& cancellations() {
  static const std::vector<Cancellation> list = {
      {"variance as a difference of means", [](std::int64_t i) { return 1000 + wave(i); },
       [](const Var& x, int& line) {
         const Var squares = mean(square(x), {1}), centre = square(mean(x, {1}));
         const Var spread = CANCELS(squares - centre);
         return sum(sqrt(spread + 1e-3));
       }},
      {"1 - cos", [](std::int64_t i) { return 1e-3 * (2 + wave(i)); },
       [](const Var& x, int& line) {
         const Var y = CANCELS(1 - cos(x));
         return sum(y / square(x));
       }},
      {"exp - 1", [](std::int64_t i) { return 1e-5 * (2 + wave(i)); },
       [](const Var& x, int& line) {
         const Var y = CANCELS(exp(x) - 1);
         return sum(y / x);
       }},
      {"log of 1 + x", [](std::int64_t i) { return 1e-5 * (2 + wave(i)); },
       [](const Var& x, int& line) {
         const Var y = CANCELS(log(1 + x));
         return sum(y / x);
       }},
      {"root of a quadratic", [](std::int64_t i) { return 1000 + 10 * wave(i); },
       [](const Var& x, int& line) {
         const Var root = sqrt(square(x) - 1);
         const Var y = CANCELS(x - root);
         return sum(y);
       }},
      {"difference of neighbours", [](std::int64_t i) { return 1e4 + 1e-2 * wave(i); },
       [](const Var& x, int& line) {
         const Var y = x * 1.1;
         const Var left = slice(y, {0, 0}, {8, 63}), right = slice(y, {0, 1}, {8, 64});
         const Var d = CANCELS(right - left);
         return sum(square(d));
       }},
      {"finite difference of a function", [](std::int64_t i) { return 1 + 0.1 * wave(i); },
       [](const Var& x, int& line) {
         const Var d = CANCELS(exp(x + 1e-4) - exp(x));
         return mean(d) * 1e4;
       }},
      {"1 - sigmoid", [](std::int64_t i) { return 12 + wave(i); },
       [](const Var& x, int& line) {
         const Var y = CANCELS(1 - sigmoid(x));
         return -sum(log(y + 1e-9));
       }},
      {"1 - tanh squared", [](std::int64_t i) { return 6 + 0.5 * wave(i); },
       [](const Var& x, int& line) {
         const Var y = CANCELS(1 - square(tanh(x)));
         return sum(y);
       }},
      {"sum of large numbers of both signs", [](std::int64_t i) { return (i % 2 ? -1 : 1) * 1e6 + wave(i); },
       [](const Var& x, int& line) {
         const Var y = x * 1.3;
         const Var s = CANCELS(sum(y, {1}));
         return sum(square(s));
       }},
      {"product with weights that cancel", [](std::int64_t i) { return 1e3 + wave(i); },
       [](const Var& x, int& line) {
         const Var signs = 1 - 2 * cast(mod(iota(x.tape(), {64}), 2), Dtype::float32);
         const Var y = exp(x * 1e-3);
         const Var s = CANCELS(einsum("ij,j->i", y, signs));
         return sum(square(s));
       }},
      {"softmax minus one hot", [](std::int64_t i) { return i % 64 == 5 ? 16.0 : wave(i); },
       [](const Var& x, int& line) {
         const Var hot = one_hot(full(x.tape(), {8}, 5, Dtype::int64), 64);
         const Var p = sum(softmax(x) * hot, {1});
         const Var d = CANCELS(1 - p);
         return sum(d) * 1e5;
       }},
      {"log of a probability near 1", [](std::int64_t i) { return 1e-6 * (2 + wave(i)); },
       [](const Var& x, int& line) {
         const Var p = 1 - x;
         const Var y = CANCELS(log(p));
         return sum(y);
       }},
      {"distance of near points by squares", [](std::int64_t i) { return 100 + 1e-2 * wave(i); },
       [](const Var& x, int& line) {
         const Var y = x * 1.0001;
         const Var both = square(x) + square(y), cross = 2 * x * y;
         const Var d = CANCELS(both - cross);
         return sum(d);
       }},
      {"mean of logits removed late", [](std::int64_t i) { return 3e5 + wave(i); },
       [](const Var& x, int& line) {
         const Var y = x / 3;
         const Var centred = CANCELS(y - mean(y, {1}, true));
         return sum(square(centred));
       }},
      {"sine of large angles", [](std::int64_t i) { return 1e5 + static_cast<double>(i) * 17.3; },
       [](const Var& x, int& line) {
         const Var angle = x * 3.7;
         const Var y = CANCELS(sin(angle));
         return sum(square(y));
       }},
      {"power of a number near 1", [](std::int64_t i) { return 1 + 1e-4 * (2 + wave(i)); },
       [](const Var& x, int& line) {
         const Var y = x * 1.0000001;
         const Var p = CANCELS(pow(y, 100000));
         return sum(log(p));
       }},
      {"exp of a large sum", [](std::int64_t i) { return 1 + 0.01 * wave(i); },
       [](const Var& x, int& line) {
         const Var s = sum(x * 1.37, {1});
         const Var y = CANCELS(exp(s - 20));
         return sum(log(y));
       }},
      {"running sum, then differences", [](std::int64_t i) { return 1e3 + wave(i); },
       [](const Var& x, int& line) {
         const Var sums = cumsum(x * 1.1, 1);
         const Var d = slice(sums, {0, 1}, {8, 64}) - slice(sums, {0, 0}, {8, 63});
         const Var y = CANCELS(d - 1100);
         return sum(square(y));
       }},
      {"remainder of a large number", [](std::int64_t i) { return 1e6 + 3.3 * static_cast<double>(i); },
       [](const Var& x, int& line) {
         const Var y = x * 0.37;
         const Var r = CANCELS(mod(y, 1));
         return sum(r);
       }},
  };
  return list;
}
}  // namespace

TEST_CASE("shadow: cancellations are the first or second of the ranking") {
  std::size_t first = 0;
  for (const Cancellation& each : cancellations()) {
    CAPTURE(each.name);
    Array values(Dtype::float32, {8, 64});
    for (std::int64_t i = 0; i < values.count(); ++i) values.as<float>()[i] = static_cast<float>(each.x(i));
    Tape tape;
    const Var x = tape.input("x", {8, 64});
    int line = 0;
    const Var y = each.record(x, line);
    Store inputs;
    inputs.add("x", values);
    const std::vector<NodeError> found = ranked(shadow({tape, {y}, inputs, {}}));
    REQUIRE(found.size() >= 2);
    const std::string place = "shadow_test.cpp, line " + std::to_string(line);
    const auto at = [&](std::size_t i) { return found[i].site.find(place) != std::string::npos; };
    first += at(0);
    CHECK((at(0) || at(1)));
    CHECK(found[0].added() > 1e-6);
  }
  CHECK(first >= 19);
}

namespace {
Array waves(const Shape& shape, double scale) {
  Array array(Dtype::float32, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<float>()[i] = static_cast<float>(scale * wave(i));
  return array;
}

/// The root mean square of the difference over that of `exact`.
double relative_error(const ArrayView& value, const ArrayView& exact) {
  double difference = 0, squares = 0;
  for (std::int64_t i = 0; i < count_of(exact.shape()); ++i) {
    const double right = exact.as<double>()[i], error = right - static_cast<double>(value.as<float>()[i]);
    difference += error * error;
    squares += right * right;
  }
  return std::sqrt(difference / squares);
}

const NodeError& error_of_output(const std::vector<NodeError>& errors, std::int64_t output) {
  const auto found = std::find_if(errors.begin(), errors.end(), [&](const NodeError& e) { return e.output == output; });
  REQUIRE(found != errors.end());
  return *found;
}
}  // namespace

TEST_CASE("shadow: total errors are those against a play in float64, through views, products and gradients") {
  Tape tape;
  const Var x = tape.input("x", {6, 8});
  const Var w = tape.parameter("w", waves({8, 4}, 0.3));
  const Var h = tanh(einsum("ij,jk->ik", x, w));
  const Var turned = reshape(transpose(h, {1, 0}), {2, 12});
  const Var y = sum(square(concat({turned, slice(turned, {0, 0}, {2, 3})}, 1)));
  const Vars outputs = {y, grad(y, {w})[0], h};
  Store inputs;
  inputs.add("x", waves({6, 8}, 2));

  PlayerOptions plain;
  plain.passes = Passes::unfused();
  Player rounded(tape, outputs, plain);
  rounded.play({{x, inputs.at("x")}});
  const WidenedTape wide = in_float64(tape, outputs);
  const Array wide_x = in_float64(inputs.at("x"));
  Player exact(wide.tape, wide.vars, plain);
  exact.play({{wide.tape.var(x.id()), wide_x}});

  const std::vector<NodeError> errors = shadow({tape, outputs, inputs, plain});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CAPTURE(i);
    const double expected = relative_error(rounded.view(outputs[i]), exact.view(wide.vars[i]));
    CHECK(error_of_output(errors, static_cast<std::int64_t>(i)).total == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("shadow: rounded parameters make errors, and the play in float64 has the right ones") {
  const Array right = waves({8, 4}, 1);
  Array coarse = right.clone();
  for (std::int64_t i = 0; i < coarse.count(); ++i)
    coarse.as<float>()[i] = std::nearbyint(right.as<float>()[i] * 16) / 16;
  Tape tape;
  const Var x = tape.input("x", {6, 8});
  const Var y = einsum("ij,jk->ik", x, tape.parameter("w", right));
  Store inputs, rounded;
  inputs.add("x", waves({6, 8}, 1));
  rounded.add("w", coarse);
  const std::vector<NodeError> errors = shadow({tape, {y}, inputs, {}}, rounded);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].node.find("parameter 'w'") != std::string::npos);
  CHECK(errors[0].made == doctest::Approx(relative_error(coarse, in_float64(right))).epsilon(1e-6));
  CHECK(errors[0].inherited == 0);
  CHECK(errors[1].made < 1e-6);
  CHECK(errors[1].inherited > 1e-3);
  CHECK(errors[1].of_operands == errors[0].total);

  Store wrong;
  wrong.add("w", waves({4, 8}, 1));
  CHECK_THROWS_WITH_AS(shadow({tape, {y}, inputs, {}}, wrong),
                       "shadow: the rounded 'w' must be float32 (8, 4), got float32 (4, 8)", Error);
}

TEST_CASE(
    "shadow: integers and booleans of the play in float64 are those of the play; elements that differ are counted") {
  Tape tape;
  const Var x = tape.input("x", {4});
  const Var y = x + 1;  // float32 rounds 1 + 2^-25 to 1
  const Var above = y > 1;
  const Var chosen = where(above, y * 2, y);
  Store inputs;
  Array values(Dtype::float32, {4});
  for (std::int64_t i = 0; i < 4; ++i) values.as<float>()[i] = i < 2 ? 0x1p-25F : 1;
  inputs.add("x", values);
  const std::vector<NodeError> errors = shadow({tape, {chosen, sum(cast(above, Dtype::float32))}, inputs, {}});
  const auto found = std::find_if(errors.begin(), errors.end(), [](const NodeError& e) { return e.op == "greater"; });
  REQUIRE(found != errors.end());
  CHECK(found->flipped == 2);
  CHECK(error_of_output(errors, 0).total < 1e-7);
  CHECK(error_of_output(errors, 1).total == 0);
}

TEST_CASE("shadow: values without elements and numbers that are not finite") {
  Tape tape;
  const Var x = tape.input("x", {4}), none = tape.input("none", {0, 3});
  Store inputs;
  Array values(Dtype::float32, {4});
  for (std::int64_t i = 0; i < 4; ++i) values.as<float>()[i] = static_cast<float>(i);
  inputs.add("x", values);
  inputs.add("none", Array(Dtype::float32, {0, 3}));
  const Var y = log(x) * 1.1;  // -inf
  const std::vector<NodeError> errors = shadow({tape, {y, sum(exp(none))}, inputs, {}});
  CHECK(error_of_output(errors, 0).total < 1e-6);
  CHECK(error_of_output(errors, 0).overflows == 0);  // it is -inf in float64 too
  CHECK(error_of_output(errors, 1).total == 0);
}

TEST_CASE("shadow: overflows of float32 alone are counted") {
  Tape tape;
  const Var x = tape.input("x", {3});
  Store inputs;
  inputs.add("x", Array(ArrayView(xt::xarray<float>{1, 100, 200})));
  const std::vector<NodeError> errors = shadow({tape, {exp(x)}, inputs, {}});
  CHECK(error_of_output(errors, 0).overflows == 2);
  CHECK(error_of_output(errors, 0).total < 1e-6);  // of the others
}

TEST_CASE("shadow: the root mean squares tell a result that is 0 from one that has no correct digit") {
  Tape tape;
  const Var x = tape.input("x", {2});
  Store inputs;
  inputs.add("x", Array(ArrayView(xt::xarray<float>{0x3p-28F, 0x4p-28F})));
  const Var small = sum((x + 1) - 1);                                               // 7 / 2^28; in float32 0
  const Var none = reshape(sum(x * tape.constant(xt::xarray<float>{4, -3})), {1});  // 0
  const std::vector<NodeError> errors = shadow({tape, {small, none, x * 2}, inputs, {}});
  CHECK(error_of_output(errors, 0).total == doctest::Approx(1));
  CHECK(error_of_output(errors, 0).rms == doctest::Approx(0x7p-28));
  CHECK(error_of_output(errors, 0).operand_rms == doctest::Approx(std::sqrt(12.5) * 0x1p-28));
  CHECK(error_of_output(errors, 1).rms <= 1e-9 * error_of_output(errors, 1).operand_rms);
  CHECK(error_of_output(errors, 1).operand_rms == doctest::Approx(0xcp-28));
  CHECK(error_of_output(errors, 2).rms == doctest::Approx(2 * std::sqrt(12.5) * 0x1p-28));
}

TEST_CASE("shadow: a play that only moves elements is exact") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  Store inputs;
  inputs.add("x", waves({2, 3}, 1));
  const std::vector<NodeError> errors = shadow({tape, {transpose(x, {1, 0})}, inputs, {}});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].total == 0);
  CHECK(errors[0].output == 0);
}

TEST_CASE("shadow: caches of a play in mode predict") {
  Tape tape(Mode::predict);
  const Var tokens = tape.input("tokens", {1, 2}, Dtype::int64), past = tape.input("past", {1}, Dtype::int64);
  tape.set_past(tokens, past, 4);
  const Var x = tape.input("x", {1, 2, 3}), before = tape.input("before", {1, 4, 3});
  const Var all = apply(builtin_ops().at("cache"), {exp(x), before, past}, {{"axis", std::int64_t{1}}})[0];
  tape.add_state(before, all);
  Store inputs;
  inputs.add("tokens", Array(Dtype::int64, {1, 2}));
  inputs.add("past", Array(Dtype::int64, {1}));
  inputs.add("x", waves({1, 2, 3}, 1));
  inputs.add("before", waves({1, 4, 3}, 1));
  PlayerOptions options;
  options.carries = tape.states();
  const std::vector<NodeError> errors = shadow({tape, {sum(all)}, inputs, options});
  CHECK(error_of_output(errors, 0).total < 1e-6);
  CHECK(error_of_output(errors, 0).rms > 0.1);
}

TEST_CASE("shadow: scans are opened, and the call and the step that cancel are named") {
  for (const bool with_gradient : {false, true}) {
    xt::xarray<float> numbers = xt::ones<float>({6, 8});
    for (std::size_t i = 0; i < 8; ++i) numbers(4, i) = 1e-3F * static_cast<float>(i + 1);
    Tape tape;
    const Var xs = tape.parameter("xs", numbers);
    ScanOptions along_first;
    along_first.axis = 0;
    int line = 0;
    const Scanned scanned = scan(
        [&](const Vars& inputs, const Vars& states) {
          const Var shifted = inputs[0] + 1e4;
          line = __LINE__ + 1;
          const Var back = shifted - 1e4;
          const Var next = states[0] * 0.5 + back;
          return std::make_pair(Vars{next}, Vars{next});
        },
        {xs}, {zeros(tape, {8})}, along_first);
    const Var loss = sum(scanned.outputs[0]);
    Vars outputs{loss};
    if (with_gradient) outputs.push_back(grad(loss, {xs})[0]);
    const std::vector<NodeError> list = ranked(shadow({tape, outputs, {}, {}}));
    REQUIRE(!list.empty());
    CHECK(list[0].op == "sub");
    CHECK(list[0].node.find("scan: sub") != std::string::npos);
    CHECK(list[0].time_step == 4);
    CHECK(list[0].time_steps == 6);
    CHECK(list[0].site.find("line " + std::to_string(line)) != std::string::npos);
  }
}
