// Kernels over few elements, which are lists of loops: the bits are those of kernels over many.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "recurrences.hpp"
#include "same_bits.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
/// Everything of which the steps of small loops consist. x [n], h [n], s [], m [2, n].
std::pair<Vars, Vars> all_kinds(const Vars& x, const Vars& state, const Var& m) {
  const Var &h = state[0], &s = state[1];
  const Var a = h * s + x[0], b = square(a) - abs(h) / 3;
  const Var chosen = where((a > b) | ~(h >= s), a, b), root = sqrt(chosen);
  const Var bounded = clip(maximum(exp(chosen), minimum(root, s)), -1, 1);
  const Var pair = stack({bounded, a}, 0);                                       // [2, n]
  const Var crossed = sum(transpose(m, {1, 0}) * transpose(pair, {1, 0}), {0});  // [2]
  const Var columns = sum(pair, {0}) + max(pair, {0}) - min(m, {0});             // [n]
  const Var whole = cast(cast(floor(4 * bounded), Dtype::int64) * 3, h.dtype());
  const Var next = tanh(columns + whole / 8 + crossed.at(1));
  return {{next, crossed, max(pair, {1}), concat({a, crossed}, 0), a > b},
          {next, sum(bounded) / (1 + max(abs(crossed)))}};
}
}  // namespace

TEST_CASE("few elements: scans compute the bits of their steps by hand") {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32})
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 70})
      for (const bool reverse : {false, true}) {
        CAPTURE(name_of(dtype));
        CAPTURE(n);
        const auto played = [&](Steps steps, const Passes& passes) {
          Tape tape(dtype);
          const auto given = [&](const Doubles& values) { return cast(tape.constant(Array(values)), dtype); };
          const Var m = given(numbers({2, n}, 3));
          ScanOptions options;
          options.axis = 0;
          options.reverse = reverse;
          const auto cell = [&](const Vars& x, const Vars& states) { return all_kinds(x, states, m); };
          const Scanned result =
              steps(cell, {given(numbers({6, n}, 1))}, {given(numbers({n}, 2)), given(numbers({}, 4))}, options);
          Vars outputs = result.outputs;
          outputs.insert(outputs.end(), result.states.begin(), result.states.end());
          PlayerOptions player_options;
          player_options.passes = passes;
          Player player(tape, outputs, player_options);
          player.play();
          std::vector<Array> arrays;
          for (const Var& output : outputs) arrays.emplace_back(player.view(output));
          return arrays;
        };
        const std::vector<Array> truth = played(by_hand, Passes::unfused());
        for (const Passes& passes : {Passes(), Passes::unfused()}) {
          const std::vector<Array> found = played(scanned, passes);
          REQUIRE(found.size() == truth.size());
          for (std::size_t i = 0; i < truth.size(); ++i) {
            CAPTURE(i);
            CHECK(same_bits(found[i], truth[i]));
          }
        }
      }
}

TEST_CASE("few elements: each op gives the bits that it gives among many") {
  using Op = std::function<Var(const Var&, const Var&)>;
  const std::vector<std::pair<std::string, Op>> ops = {
      {"add", [](const Var& x, const Var& y) { return x + y; }},
      {"sub", [](const Var& x, const Var& y) { return x - y; }},
      {"mul", [](const Var& x, const Var& y) { return x * y; }},
      {"div", [](const Var& x, const Var& y) { return x / y; }},
      {"maximum", [](const Var& x, const Var& y) { return maximum(x, y); }},
      {"minimum", [](const Var& x, const Var& y) { return minimum(x, y); }},
      {"pow", [](const Var& x, const Var& y) { return pow(x, y); }},
      {"mod", [](const Var& x, const Var& y) { return mod(x, y); }},
      {"floor_divide", [](const Var& x, const Var& y) { return floor_divide(x, y); }},
      {"where", [](const Var& x, const Var& y) { return where(x < y, x, y); }},
      {"less", [](const Var& x, const Var& y) { return x < y; }},
      {"equal", [](const Var& x, const Var& y) { return x == y; }},
      {"sqrt", [](const Var& x, const Var&) { return sqrt(x); }},
      {"rsqrt", [](const Var& x, const Var&) { return rsqrt(x); }},
      {"exp", [](const Var& x, const Var&) { return exp(x); }},
      {"log", [](const Var& x, const Var&) { return log(x); }},
      {"sin", [](const Var& x, const Var&) { return sin(x); }},
      {"tanh", [](const Var& x, const Var&) { return tanh(x); }},
      {"relu", [](const Var& x, const Var&) { return relu(x); }},
      {"sign", [](const Var& x, const Var&) { return sign(x); }},
      {"floor", [](const Var& x, const Var&) { return floor(x); }},
      {"neg", [](const Var& x, const Var&) { return -x; }},
      {"abs", [](const Var& x, const Var&) { return abs(x); }},
      {"clip", [](const Var& x, const Var&) { return clip(x, -1, 1); }},
      {"cast", [](const Var& x, const Var&) { return cast(x, Dtype::int32); }},
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {-1,     0.5, 2,    -0.0, 0,    infinity, -infinity, std::nan(""),
                                      1e-310, 3,   -2.5, 7,    1e30, 0.1,      -1.0 / 3,  40};
  const std::int64_t size = static_cast<std::int64_t>(values.size()), times = 300;
  for (const auto& each : ops)
    for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
      const auto& op = each.second;
      CAPTURE(each.first);
      CAPTURE(name_of(dtype));
      Array many(Dtype::float64, {times, size}), others(Dtype::float64, {times, size});
      for (std::int64_t i = 0; i < times * size; ++i) {
        many.as<double>()[i] = values[static_cast<std::size_t>(i % size)];
        others.as<double>()[i] = values[static_cast<std::size_t>((i + i / size) % size)];
      }
      Tape tape;
      const Var x = cast(tape.constant(many), dtype), y = cast(tape.constant(others), dtype);
      const Var all = op(x, y);
      Vars parts = {all};
      std::vector<std::pair<std::int64_t, std::int64_t>> places;  // row, elements
      for (std::int64_t row = 0; row < size; ++row)
        for (std::int64_t count = 1; count <= size; count += row % 3 + 1) {
          parts.push_back(op(x.at(row, Slice(size - count)), y.at(row, Slice(size - count))));
          places.emplace_back(row, count);
        }
      PlayerOptions options;
      options.passes = Passes::unfused();
      Player player(tape, parts, options);
      player.play();
      const Array whole(player.view(all));
      const std::size_t bytes = size_of(whole.dtype());
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int64_t row = places[i].first, count = places[i].second;
        const Array part(player.view(parts[i + 1]));
        const auto* expected =
            static_cast<const std::byte*>(whole.data()) + static_cast<std::size_t>(row * size + size - count) * bytes;
        CAPTURE(row);
        CAPTURE(count);
        CHECK(std::memcmp(part.data(), expected, static_cast<std::size_t>(count) * bytes) == 0);
      }
    }
}

TEST_CASE("few elements: reductions give the bits that they give of many rows") {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32})
    for (std::int64_t n = 1; n <= 64; n += n < 12 ? 1 : 13) {
      CAPTURE(n);
      Tape tape;
      const Var rows = cast(tape.constant(Array(numbers({100, n}, 1))), dtype);
      const std::vector<std::function<Var(const Var&, const Axes&)>> reductions = {
          [](const Var& x, const Axes& axes) { return sum(x, axes); },
          [](const Var& x, const Axes& axes) { return max(x, axes); },
          [](const Var& x, const Axes& axes) { return min(x, axes); },
          [](const Var& x, const Axes& axes) { return mean(x, axes); }};
      for (const auto& reduce : reductions) {
        const Var of_rows = reduce(rows, -1), of_columns = reduce(transpose(rows, {1, 0}), 0);
        const Var one = reduce(rows.at(7), 0), column = reduce(reshape(rows.at(7), {n, 1}), 0);
        Player player(tape, {of_rows.at(7), one, of_columns.at(7), column.at(0)});
        player.play();
        CHECK(same_bits(player.view(player.outputs()[0]), player.view(player.outputs()[1])));
        CHECK(same_bits(player.view(player.outputs()[0]), player.view(player.outputs()[3])));
        CHECK(std::abs(player.scalar(player.outputs()[2]) - player.scalar(player.outputs()[1])) < 1e-5);
      }
    }
}
