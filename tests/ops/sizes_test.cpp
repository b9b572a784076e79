// Sizes too large for 64 bits or for memory: shape rules give the right result or refuse them, naming the op.
#include <doctest/doctest.h>

#include <limits>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"

using namespace xtape;

namespace {
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t two_to(int power) {
  return std::int64_t{1} << power;
}

/// The error message of a call, which must leave nothing on the tape.
template <class E = ShapeError, class Record>
std::string refusal(const Tape& tape, const Record& record) {
  const std::size_t size = tape.size();
  try {
    record();
  } catch (const E& error) {
    CHECK(tape.size() == size);
    return error.what();
  }
  return "nothing was refused";
}

/// Whether `text` contains every one of `parts`.
bool says(const std::string& text, const std::vector<std::string>& parts) {
  INFO(text);
  bool all = true;
  for (const std::string& part : parts) {
    CAPTURE(part);
    const bool found = text.find(part) != std::string::npos;
    CHECK(found);
    all = all && found;
  }
  return all;
}

Var repeated(Tape& tape, const Shape& shape, Dtype dtype = Dtype::float32) {
  return broadcast_to(tape.constant(1, dtype), shape);
}
}  // namespace

TEST_CASE("sizes: tanh of a broadcast of 2^62 numbers is refused") {
  Tape tape;
  const Var x = tape.input("x", {3});
  const Var total = sum(x);
  CHECK(says(refusal(tape, [&] { tanh(broadcast_to(total, {two_to(62)})); }),
             {"broadcast_to: no array can have shape (4611686018427387904,)", "its operands are float32 ()"}));
}

TEST_CASE("sizes: a sum of a broadcast of 2^64 numbers is refused, not 0") {
  Tape tape;
  const Var x = tape.input("x", {1}, Dtype::boolean);
  CHECK(says(refusal(tape,
                     [&] {
                       sum(broadcast_to(x, {two_to(32), two_to(32), 1}));
                     }),
             {"broadcast_to: ", "(4294967296, 4294967296, 1)"}));
  const Var flags = repeated(tape, {two_to(61), 1}, Dtype::boolean);
  CHECK(says(refusal(tape, [&] { sum(flags, {1}); }),
             {"sum: ", "(2305843009213693952,)", "8 bytes each"}));  // bool is summed in int64
}

TEST_CASE("sizes: outer products are refused with the errors of einsum and matmul") {
  Tape tape;
  const Var a = repeated(tape, {two_to(40)});
  CHECK(says(refusal(tape,
                     [&] {
                       einsum("i,j->ij", {a, a});
                     }),
             {"einsum: no array can have shape (1099511627776, 1099511627776)", "float32 (1099511627776,)"}));
  const Var column = repeated(tape, {two_to(40), 1}), row = repeated(tape, {1, two_to(40)});
  CHECK(says(refusal(tape, [&] { matmul(column, row); }), {"matmul: einsum: ", "(1099511627776, 1099511627776)"}));
  CHECK(says(refusal(tape, [&] { mul(column, row); }), {"mul: ", "(1099511627776, 1099511627776)"}));
}

TEST_CASE("sizes: concat and stack of more than an array can hold are refused") {
  Tape tape;
  const Var half = repeated(tape, {two_to(62)}, Dtype::boolean);
  CHECK(says(refusal(tape,
                     [&] {
                       concat({half, half}, 0);
                     }),
             {"concat: arrays of 4611686018427387904 and 4611686018427387904 along axis 0"}));
  CHECK(says(refusal(tape, [&] { stack({half, half}, 0); }), {"stack: ", "(2, 4611686018427387904)"}));
  CHECK(says(refusal(tape, [&] { stack({half, half}, -1); }), {"stack: ", "(4611686018427387904, 2)"}));
}

TEST_CASE("sizes: parts of a split that add up only modulo 2^64 are refused") {
  Tape tape;
  const Var x = tape.input("x", {4});
  CHECK(says(refusal(tape,
                     [&] {
                       split(x, {most, most, 6}, 0);
                     }),
             {"split: sizes (9223372036854775807, 9223372036854775807, 6) must add up to 4"}));
  CHECK_THROWS_AS(split(x, {-4, 8}, 0), ShapeError);
}

TEST_CASE("sizes: splitting into too many arrays is refused") {
  Tape tape;
  const Var x = repeated(tape, {two_to(40)});
  CHECK(says(refusal(tape, [&] { unstack(x); }), {"unstack: axis 0 of (1099511627776,)", "1048576"}));
  CHECK(says(refusal(tape, [&] { split(x, two_to(39), 0); }), {"549755813888 arrays"}));
}

TEST_CASE("sizes: slices with the largest steps, starts and stops are as in NumPy") {
  const Doubles x = numbers({5});
  struct Example {
    std::int64_t start, stop, step;
    std::vector<std::int64_t> indices;
  };
  for (const Example& example :
       {Example{0, open_end, most, {0}}, Example{2, open_end, most, {2}}, Example{-1, open_end, most - 1, {4}},
        Example{0, most - 1, 2, {0, 2, 4}}, Example{open_end, open_end, least, {4}},
        Example{3, open_end, least + 1, {3}}, Example{open_end, least, -1, {4, 3, 2, 1, 0}},
        Example{least, open_end, 1, {0, 1, 2, 3, 4}}, Example{least, most - 1, most, {0}},
        Example{most - 1, open_end, 1, {}}, Example{most - 1, least, -4, {4, 0}}, Example{least, open_end, -1, {}},
        Example{most - 1, least, least, {4}}, Example{0, least, 1, {}}, Example{1, open_end, two_to(62), {1}},
        Example{0, open_end, 4, {0, 4}}}) {
    CAPTURE(example.start);
    CAPTURE(example.stop);
    CAPTURE(example.step);
    const auto record = [&](const Vars& v) { return slice(v[0], {example.start}, {example.stop}, {example.step}); };
    const Doubles expected = made_from({static_cast<std::int64_t>(example.indices.size())}, [&](const Shape& i) {
      return x(example.indices[static_cast<std::size_t>(i[0])]);
    });
    CHECK(played_one(record, {x}) == expected);
    if (!example.indices.empty()) check_gradient([&](const Vars& v) { return square(record(v)); }, {x});
  }
}

TEST_CASE("sizes: slices of the longest arrays have the same sizes as in NumPy") {
  Tape tape;
  const Var x = repeated(tape, {most}, Dtype::boolean);
  CHECK(slice(x, {0}, {open_end}, {2}).shape() == Shape{two_to(62)});
  CHECK(slice(x, {0}, {open_end}, {most - 1}).shape() == Shape{2});
  CHECK(slice(x, {open_end}, {open_end}, {least}).shape() == Shape{1});
  CHECK(slice(x, {open_end}, {open_end}, {-(most - 1)}).shape() == Shape{2});
  CHECK(slice(x, {-2}, {open_end}, {1}).shape() == Shape{2});
  CHECK(slice(x, {least}, {open_end}, {1}).shape() == Shape{most});
  const Var numbers = repeated(tape, {two_to(58)});
  const Var two = slice(numbers, {1}, {open_end}, {two_to(57)});
  CHECK(two.shape() == Shape{2});
  CHECK(grad(sum(two), {numbers})[0].shape() == numbers.shape());
}

TEST_CASE(
    "sizes: update_slice accepts any step for one element, and refuses slices outside x also if offsets overflow") {
  const Doubles x = numbers({4}), one = numbers({1}, 1);
  for (const std::int64_t step : {most, least, two_to(62)}) {
    const auto record = [&](const Vars& v) { return update_slice(v[0], v[1], {2}, {step}); };
    CHECK(played_one(record, {x, one}) == made_from({4}, [&](const Shape& i) { return i[0] == 2 ? one(0) : x(i[0]); }));
    check_gradient([&](const Vars& v) { return square(record(v)); }, {x, one});
  }
  Tape tape;
  const Var whole = tape.input("x", {4}), two = tape.input("two", {2}), three = tape.input("three", {3});
  const std::string outside = refusal(tape, [&] { update_slice(whole, three, {0}, {two_to(62)}); });
  CHECK(says(outside, {"update_slice: ", "(3,)", "(4,)"}));
  for (const std::int64_t step : {most, least}) CHECK_THROWS_AS(update_slice(whole, two, {1}, {step}), ShapeError);
  for (const std::int64_t start : {most, least}) CHECK_THROWS_AS(update_slice(whole, two, {start}), ShapeError);
}

TEST_CASE("sizes: pad and tile refuse axes longer than 64 bits count") {
  Tape tape;
  const Var x = tape.input("x", {3});
  const std::string padded = refusal(tape, [&] { pad(x, {most}, {0}); });
  CHECK(says(padded, {"pad: before (9223372036854775807,) and after (0,)", "(3,)"}));
  CHECK(says(refusal(tape, [&] { pad(x, {most - 3}, {most}); }), {"pad: "}));
  CHECK(says(refusal(tape, [&] { pad(x, {0}, {most - 3}); }), {"pad: no array can have shape (9223372036854775807,)"}));
  CHECK(says(refusal(tape, [&] { tile(x, {most}); }), {"tile: repeats (9223372036854775807,)", "(3,)"}));
  CHECK(says(refusal(tape, [&] { tile(x, {two_to(60)}); }), {"tile: ", "1152921504606846976"}));
  CHECK(tile(tape.input("none", {0}), {two_to(60)}).shape() == Shape{0});
}

TEST_CASE("sizes: one_hot, eye and diag_embed refuse results that no array can have") {
  Tape tape;
  const Var i = tape.input("i", {2}, Dtype::int32);
  CHECK(says(refusal(tape, [&] { one_hot(i, most); }), {"one_hot: ", "int32 (2,)"}));
  CHECK(says(refusal(tape, [&] { eye(tape, two_to(32), two_to(32)); }), {"eye: ", "(4294967296, 4294967296)"}));
  CHECK(says(refusal(tape, [&] { eye(tape, most, -1); }), {"eye: "}));
  const Var diagonal = repeated(tape, {two_to(32)});
  CHECK(says(refusal(tape, [&] { diag_embed(diagonal); }), {"diag_embed: ", "(4294967296, 4294967296)"}));
  CHECK(eye(tape, two_to(31), two_to(31), Dtype::boolean).shape() == Shape{two_to(31), two_to(31)});
}

TEST_CASE("sizes: int32 does not count beyond its range") {
  Tape tape;
  CHECK(says(refusal<DtypeError>(tape, [&] { iota(tape, {two_to(31) + 1}, 0, Dtype::int32); }),
             {"iota: the last index 2147483648 does not fit int32", "use int64"}));
  CHECK(iota(tape, {two_to(31)}, 0, Dtype::int32).shape() == Shape{two_to(31)});
  // one_hot's expansion compares indices with classes: an index must not equal a class 2^32 further on.
  const Var i = tape.input("i", {2}, Dtype::int32);
  const Node hot = one_hot(i, two_to(33), Dtype::boolean).node();
  CHECK(hot.op->expand({{hot.attributes}, *hot.op, hot, tape, {i}})[0].type() == hot.outputs[0]);
}

TEST_CASE("sizes: reshape refuses sizes whose product exceeds 64 bits") {
  Tape tape;
  const Var x = tape.input("x", {6}), none = tape.input("none", {0});
  for (const Shape& shape : {Shape{most, 2, -1}, {two_to(32), two_to(32), -1}, {two_to(32), two_to(32)}, {-1, least}})
    CHECK(says(refusal(tape, [&] { reshape(x, shape); }), {"reshape: ", "(6,)", to_string(shape)}));
  CHECK_THROWS_AS(reshape(none, {two_to(32), two_to(32)}), ShapeError);  // 2^64 is not 0
  CHECK_THROWS_AS(reshape(none, {0, two_to(40), two_to(40)}), ShapeError);
  CHECK(reshape(none, {two_to(40), 0}).shape() == Shape{two_to(40), 0});
}

TEST_CASE("sizes: rearrange refuses given sizes whose product exceeds 64 bits") {
  Tape tape;
  const Var none = tape.input("none", {0}), both = tape.input("both", {0, 0});
  CHECK(says(refusal(tape,
                     [&] {
                       rearrange(none, "(a b c) -> a b c", {{"a", two_to(32)}, {"b", two_to(32)}, {"c", 1}});
                     }),
             {"rearrange: axis 0 of (0,) has size 0", "2^63 - 1"}));
  CHECK(says(refusal(tape,
                     [&] {
                       rearrange(both, "(a b) (c d) -> (a c) b d", {{"a", two_to(32)}, {"c", two_to(32)}});
                     }),
             {"longer than 2^63 - 1"}));
}

TEST_CASE("sizes: triangles of every diagonal") {
  const Doubles x = numbers({3, 4});
  const std::vector<std::int64_t> diagonals{least, least + 1, -two_to(62), -4, -3, 3, 4, two_to(62), most - 1, most};
  for (const std::int64_t diagonal : diagonals) {
    CAPTURE(diagonal);
    const bool above = diagonal > 0;
    const auto lower = [&](const Shape& i) {
      return above || (diagonal > -10 && i[1] - i[0] <= diagonal) ? element(x, i) : 0.0;
    };
    const auto upper = [&](const Shape& i) {
      return !above || (diagonal < 10 && i[1] - i[0] >= diagonal) ? element(x, i) : 0.0;
    };
    CHECK(played_one([&](const Vars& v) { return tril(v[0], diagonal); }, {x}) == made_from({3, 4}, lower));
    CHECK(played_one([&](const Vars& v) { return triu(v[0], diagonal); }, {x}) == made_from({3, 4}, upper));
    check_gradient([&](const Vars& v) { return square(tril(v[0], diagonal)); }, {x});
    check_gradient([&](const Vars& v) { return square(triu(v[0], diagonal)); }, {x});
  }
}

TEST_CASE("sizes: masks and caches of the longest sequences are refused") {
  Tape tape;
  const Var sequence = repeated(tape, {1, two_to(40)});
  CHECK(says(refusal(tape, [&] { causal_mask(sequence); }), {"causal_mask: ", "(1099511627776, 1099511627776)"}));
  Tape predicting(Mode::predict);
  const Var tokens = predicting.input("tokens", {2, 3}, Dtype::int64);
  predicting.set_past(tokens, predicting.input("past", {2}, Dtype::int64), most);
  const Var x = cast(tokens, Dtype::float32);
  CHECK(says(refusal(predicting, [&] { cache(x); }), {"cache: ", "(2, 9223372036854775807)"}));
  CHECK(says(refusal(predicting, [&] { causal_mask(tokens); }), {"causal_mask: "}));
  CHECK(positions(tokens).shape() == Shape{2, 3});
}

TEST_CASE("sizes: an attention is refused if no array can hold its scores") {
  Tape tape;
  const Var q = repeated(tape, {2, two_to(31), 1, 1});
  const Var hidden = tape.constant(0, Dtype::boolean);
  CHECK(says(
      refusal(tape,
              [&] {
                const std::string scores = "bqhe,bkhe->bhqk", outputs = "bhqk,bkhd->bqhd";
                apply(builtin_ops().at("attention"), {q, q, q, hidden}, {{"scores", scores}, {"outputs", outputs}});
              }),
      {"attention: ", "(2, 1, 2147483648, 2147483648)"}));
}

TEST_CASE("sizes: a scan's stacked outputs are checked, and too many steps are not expanded") {
  Tape tape;
  const Var x = repeated(tape, {two_to(40)});
  const ScanOptions along{0, false, {}};
  const auto doubled = [](const Vars& slices, const Vars&) { return std::pair{Vars{slices[0] * 2.0}, Vars{}}; };
  const auto widened = [](const Vars& slices, const Vars&) {
    return std::pair{Vars{broadcast_to(slices[0] * 2.0, {two_to(30)})}, Vars{}};
  };
  CHECK(says(refusal(tape, [&] { scan(widened, {x}, {}, along); }), {"scan: ", "(1099511627776, 1073741824)"}));
  const Scanned scanned = scan(doubled, {x}, {}, along);
  CHECK(scanned.outputs[0].shape() == Shape{two_to(40)});
  try {
    PlayerOptions options;
    options.passes = Passes::reference();
    Player(tape, scanned.outputs, options);
    FAIL("2^40 steps were written out");
  } catch (const Error& error) {
    CHECK(says(error.what(), {"scan: 1099511627776 steps are too many"}));
  }
}
