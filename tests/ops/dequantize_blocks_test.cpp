// Arrays in blocks of 4 to 8 bits: what reads them, and what gives the same numbers as an array of floats.
#include <cstring>
#include <random>

#include "blocks.hpp"
#include "distance.hpp"
#include "folders.hpp"
#include "needs_instructions.hpp"
#include "play.hpp"
#include "same_bits.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
constexpr Dtype formats[] = {Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k};

/// An array of random blocks, and its numbers.
struct Blocks {
  Array blocks, floats;

  Blocks(Dtype dtype, const Shape& shape, unsigned seed = 1) {
    std::mt19937 random(seed);
    blocks =
        rounded_to_blocks(dtype, shape, [&](std::int64_t) { return static_cast<float>(random() % 20001) / 10000 - 1; });
    floats = decoded_blocks(blocks);
  }
};

Array random_floats(const Shape& shape) {
  Array array(Dtype::float32, shape);
  std::mt19937 random(7);
  for (std::int64_t i = 0; i < array.count(); ++i)
    array.as<float>()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
  return array;
}

/// Returns function(x, weight) with a weight in blocks, and with the same weight as floats.
std::pair<Array, Array> both(const Blocks& weight, const Array& x, const std::function<Var(Var, Var)>& function,
                             int threads = 2) {
  Tape tape;
  const Var given = tape.parameter("x", x);
  return {fast(function(given, dequantize(tape.parameter("w", weight.blocks))), threads),
          fast(function(given, tape.parameter("floats", weight.floats)), threads)};
}

/// Returns the number of steps of a plan of this op.
std::int64_t steps_of(const Var& var, const std::string& op) {
  const Player player(var.tape(), {var});
  const auto& steps = player.plan().steps;
  return std::count_if(steps.begin(), steps.end(), [&](const auto& step) { return step.op == op; });
}
}  // namespace

TEST_CASE("op dequantize_blocks: values, views, elementwise readers, the reference") {
  Tape tape;
  Array one(Dtype::q8_0, {1, 32});  // the scale 0.5, then -16 to 15
  auto* bytes = static_cast<std::uint8_t*>(one.data());
  bytes[1] = 0x38;
  for (int i = 0; i < 32; ++i) bytes[2 + i] = static_cast<std::uint8_t>(i - 16);
  const Array numbers = fast(dequantize(tape.parameter("one", one)));
  for (int i = 0; i < 32; ++i) CHECK(numbers.as<float>()[i] == 0.5F * static_cast<float>(i - 16));
  for (const Dtype dtype : formats) {
    const Blocks weight(dtype, {6, 3, 256});
    const Var w = tape.parameter(name_of(dtype), weight.blocks), floats = tape.constant(weight.floats);
    CHECK(same_bits(fast(dequantize(w)), weight.floats));
    CHECK(same_bits(evaluate(dequantize(w)), weight.floats));
    CHECK(same_bits(fast(cast(w, Dtype::float32)), weight.floats));
    CHECK(same_bits(fast(w * 2 + 1), fast(floats * 2 + 1)));
    CHECK(same_bits(fast(transpose(dequantize(w), {2, 0, 1}) * 1), fast(transpose(floats, {2, 0, 1}) * 1)));
    CHECK(same_bits(fast(dequantize(transpose(w, {1, 0, 2}))), fast(transpose(floats, {1, 0, 2}) * 1)));
    CHECK(same_bits(fast(exp(dequantize(w).at(all, 1))), fast(exp(floats.at(all, 1)))));
    CHECK(cast(w, Dtype::float64).dtype() == Dtype::float64);
  }
}

TEST_CASE("op dequantize_blocks: products read blocks and have the bits of products of floats") {
  for (const Dtype dtype : formats)
    for (const std::int64_t rows : {1, 2, 3, 5, 8, 9, 40})
      for (const int threads : {1, 3}) {
        const Blocks weight(dtype, {70, 512}, static_cast<unsigned>(rows));
        const auto [blocks, floats] = both(
            weight, random_floats({rows, 512}),
            [](Var x, Var w) {
              return einsum("bi,oi->bo", {x, w});
            },
            threads);
        CHECK(same_bits(blocks, floats));
      }
  Tape tape;
  const Var w = tape.parameter("w", Blocks(Dtype::q4_k, {64, 512}).blocks);
  CHECK(steps_of(einsum("bi,oi->bo", {tape.input("x", {4, 512}), dequantize(w)}), "dequantize_blocks") == 0);
  CHECK(steps_of(matmul(tape.input("y", {20, 512}), transpose(dequantize(w), {1, 0})), "dequantize_blocks") == 0);
  CHECK(steps_of(exp(dequantize(w)), "dequantize_blocks") == 1);
}

TEST_CASE("op dequantize_blocks: products of all forms") {
  struct Form {
    const char* equation;
    Shape x, w;
  };
  const Form forms[] = {{"bi,io->bo", {3, 40}, {40, 256}},  // blocks along the columns
                        {"bi,io->bo", {30, 40}, {40, 256}},
                        {"bi,oi->bo", {2, 48}, {32, 48}},  // blocks across columns
                        {"bi,oi->bo", {50, 48}, {64, 48}},
                        {"ebi,eoi->ebo", {3, 2, 256}, {3, 20, 256}},
                        {"bhd,ohd->bo", {4, 8, 64}, {24, 8, 64}},
                        {"bhd,hdo->bo", {20, 4, 4}, {4, 4, 64}},
                        {"i,i->", {512}, {512}},
                        {"bi,oi->bo", {0, 256}, {4, 256}}};
  for (const Dtype dtype : formats)
    for (const Form& form : forms) {
      if (count_of(form.w) % block_of(dtype) != 0) continue;
      CAPTURE(form.equation);
      const auto [blocks, floats] = both(Blocks(dtype, form.w), random_floats(form.x), [&](Var x, Var w) {
        return einsum(form.equation, {x, w});
      });
      CHECK(relative_distance(blocks, floats) < 2e-6);
    }
  const Blocks weight(Dtype::q6_k, {32, 256}), other(Dtype::q8_0, {40, 256}, 2);
  Tape tape;
  const Var a = dequantize(tape.parameter("a", weight.blocks)), b = dequantize(tape.parameter("b", other.blocks));
  CHECK(relative_distance(fast(einsum("mi,ni->mn", {a, b})),
                          fast(einsum("mi,ni->mn", {tape.constant(weight.floats), tape.constant(other.floats)}))) <
        2e-6);
}

TEST_CASE("op dequantize_blocks: a transposed weight where views are copied") {
  const Blocks weight(Dtype::q8_0, {32, 64});
  Tape tape;
  const Var x = tape.constant(random_floats({5, 64}));
  const Var y = matmul(x, transpose(dequantize(tape.parameter("w", weight.blocks)), {1, 0}));
  PlayerOptions options;
  options.passes.views = false;
  Player player(tape, {y}, options);
  player.play({});
  CHECK(relative_distance(Array(player.view(y)), fast(matmul(x, transpose(tape.constant(weight.floats), {1, 0})))) <
        2e-6);
}

TEST_CASE("op dequantize_blocks: take reads rows of blocks") {
  Tape tape;
  const Var rows = tape.constant(ArrayView(xt::xarray<std::int64_t>{{3, 0}, {5, 3}}));
  for (const Dtype dtype : formats) {
    const Blocks weight(dtype, {6, 2, 256});
    const Var w = tape.parameter(name_of(dtype), weight.blocks), floats = tape.constant(weight.floats);
    CHECK(same_bits(fast(take(dequantize(w), rows)), fast(take(floats, rows))));
    CHECK(same_bits(fast(dequantize(take(w, rows))), fast(take(floats, rows))));
    CHECK(same_bits(fast(take(dequantize(w), rows, 2)), fast(take(floats, rows, 2))));
    CHECK(same_bits(fast(take(transpose(dequantize(w), {1, 0, 2}), tape.constant(std::int64_t{1}))),
                    fast(take(transpose(floats, {1, 0, 2}), tape.constant(std::int64_t{1})))));
  }
  const Var table = tape.parameter("table", Blocks(Dtype::q4_k, {1000, 256}).blocks);
  const Player player(tape, {take(dequantize(table), rows)});
  for (const auto& step : player.plan().steps) CHECK(step.bytes < 20000);  // four rows, not all
}

TEST_CASE("op dequantize_blocks: gradients reach what a weight is multiplied with, and batches share it") {
  const Blocks weight(Dtype::q4_k, {24, 256});
  const auto gradient = [](Var x, Var w) { return grad(sum(square(einsum("bi,oi->bo", {x, w}))), {x})[0]; };
  for (const std::int64_t rows : {2, 30}) {
    const auto [blocks, floats] = both(weight, random_floats({rows, 256}), gradient);
    CHECK(relative_distance(blocks, floats) < 2e-6);
    const auto batched = [](Var x, Var w) {
      return vmap(
          [](const Vars& each) {
            return Vars{einsum("i,oi->o", {each[0], each[1]})};
          },
          {x, w}, {.in_axes = {0, std::nullopt}})[0];
    };
    const auto [mapped, mapped_floats] = both(weight, random_floats({rows, 256}), batched);
    CHECK(same_bits(mapped, mapped_floats));
  }
  Tape tape;
  const Var w = tape.parameter("w", weight.blocks), loss = sum(dequantize(w));
  CHECK_THROWS_AS(grad(loss, {w}), Error);
  const Vars each = vmap([](const Vars& x) { return Vars{sum(dequantize(x[0]))}; }, {w});
  CHECK(relative_distance(fast(each[0]), fast(sum(tape.constant(weight.floats), {1}))) < 1e-6);
}

TEST_CASE("precision int8: products with blocks round the other operand, and nothing else does" * needs_bytes()) {
  const auto played = [](const Var& var, Precision precision, Bits bits = Bits::usual) {
    PlayerOptions options;
    options.precision = precision;
    options.bits = bits;
    options.passes.fold = false;
    return values_of({var}, options)[0];
  };
  const Blocks weight(Dtype::q4_k, {24, 512});
  Tape tape;
  const Var w = dequantize(tape.parameter("w", weight.blocks)), floats = tape.parameter("floats", weight.floats);
  for (const std::int64_t rows : {2, 30}) {
    const Var x = tape.parameter("x" + std::to_string(rows), random_floats({rows, 512}));
    const Var y = einsum("bi,oi->bo", {x, w}), rounded = y + 1, dense = einsum("bi,oi->bo", {x, floats});
    const Array exact = played(y, Precision::float32), bytes = played(y, Precision::int8, Bits::same);
    CHECK(relative_distance(bytes, exact) < 0.02);
    CHECK(relative_distance(bytes, exact) > 1e-4);
    CHECK(same_bits(played(rounded, Precision::int8), fast(tape.constant(bytes) + 1)));  // as einsum_add, too
    CHECK(same_bits(played(dense, Precision::int8), played(dense, Precision::float32)));
    // The sums of the gradient do not lie along the blocks.
    const Var gradient = grad(sum(y * tape.constant(random_floats({rows, 24}))), {x})[0];
    const Array exact_gradient = played(gradient, Precision::float32);
    CHECK(same_bits(played(gradient, Precision::int8), exact_gradient));
    CHECK(same_bits(played(y, Precision::int8_training), bytes));
    const Array trained = played(gradient, Precision::int8_training, Bits::same);
    CHECK(same_bits(trained, exact_gradient) == (rows == 2));  // few rows stay exact
    CHECK(relative_distance(trained, exact_gradient) < 0.03);
    // Axes that do not merge, and a narrow operand, change nothing.
    const Var parts = transpose(reshape(x, {rows, 2, 256}), {1, 0, 2});
    const Var w3 = reshape(w, {24, 2, 256});
    CHECK(same_bits(played(einsum("cbi,oci->bo", {parts * 1, w3}), Precision::int8), bytes));
    // A batch of matrices has the bits of each.
    const Blocks matrices(Dtype::q4_k, {3, 8, 512});
    const Var stacked = dequantize(tape.parameter("stacked" + std::to_string(rows), matrices.blocks));
    const Array batch =
        played(einsum("ebi,eoi->ebo", {reshape(concat({x, x * 2, x - 1}), {3, rows, 512}), stacked}), Precision::int8);
    for (std::size_t e = 0; e < 3; ++e) {
      Array matrix(Dtype::q4_k, {8, 512});
      std::memcpy(matrix.data(), static_cast<const std::byte*>(matrices.blocks.data()) + e * matrix.bytes(),
                  matrix.bytes());
      const std::string name = "matrix" + std::to_string(rows) + std::to_string(e);
      const Var w_one = dequantize(tape.parameter(name, matrix));
      const Array one = played(einsum("bi,oi->bo", {e == 0 ? x : e == 1 ? x * 2 : x - 1, w_one}), Precision::int8);
      CHECK(std::memcmp(one.data(), static_cast<const std::byte*>(batch.data()) + e * one.bytes(), one.bytes()) == 0);
    }
    // A projection with its cross-entropy has the gradient of both ops.
    const Var logits = einsum("bi,oi->bo", {concat(Vars(40, x)), w});
    const Var loss = cross_entropy(logits, tape.constant(Array(Dtype::int64, {40 * rows})), "sum");
    const Var to_input = grad(loss, {x})[0];
    const Array exact_input = played(to_input, Precision::float32),
                trained_input = played(to_input, Precision::int8_training);
    CHECK(relative_distance(trained_input, exact_input) < 0.03);
    CHECK(relative_distance(trained_input, exact_input) > 1e-4);
    const Var narrow = cast(x, Dtype::bfloat16);
    CHECK(same_bits(
        played(einsum("bi,oi->bo", {cast(narrow, Dtype::float32), w}), Precision::int8),
        played(einsum("bi,oi->bo", {tape.constant(fast(cast(narrow, Dtype::float32))), w}), Precision::int8)));
  }
}

TEST_CASE("op dequantize_blocks: errors") {
  Tape tape;
  const Blocks weight(Dtype::q4_k, {4, 256});
  const Var w = tape.parameter("w", weight.blocks), x = tape.input("x", {4, 256});
  CHECK_THROWS_WITH_AS(dequantize(x), "dequantize_blocks: x must have a block format, got float32 (4, 256)",
                       DtypeError);
  CHECK_THROWS_WITH_AS(flip(w, {0}), "flip: cannot read Q4_K (4, 256) in blocks: dequantize it first", DtypeError);
  CHECK_THROWS_WITH_AS(take(w, tape.constant(std::int64_t{1}), 1),
                       "take: cannot read Q4_K (4, 256) in blocks: dequantize it first", DtypeError);
  CHECK(concat({w, x}, 0).type() == ValueType{Dtype::float32, {8, 256}});  // an op of numbers dequantizes
  CHECK_THROWS_WITH_AS(slice(w, {1, 0}, {3, 256}), "slice: cannot read Q4_K (4, 256) in blocks: dequantize it first",
                       DtypeError);
  CHECK(slice(w, {0, 0}, {3, 256}).dtype() == Dtype::q4_k);
  CHECK_THROWS_WITH_AS(cast(x, Dtype::q4_k), "cast: attribute 'dtype' cannot be Q4_K, as which only weights are stored",
                       DtypeError);
  CHECK_THROWS_WITH_AS(Array(Dtype::q4_k, {3, 100}), "Q4_K stores blocks of 256 numbers, and shape (3, 100) has 300",
                       ShapeError);
  CHECK_THROWS_WITH_AS(weight.blocks.as<float>(), "the array holds Q4_K, not float32", DtypeError);
  CHECK_THROWS_AS(size_of(Dtype::q8_0), DtypeError);
  for (const std::int64_t column : {0, 3}) CHECK_THROWS_AS(static_cast<void>(weight.blocks(0, column)), Error);
  CHECK(weight.blocks.bytes() == 4 * 144);
  CHECK(dtype_named("Q5_K") == Dtype::q5_k);
}

TEST_CASE("blocks are saved and read as they are, and may lie anywhere in memory") {
  const test::Folder folder;
  Store store;
  for (const Dtype dtype : formats) store.add(name_of(dtype), Blocks(dtype, {3, 256}).blocks);
  save_arrays(folder / "blocks", store);
  const Store read = load_arrays(folder / "blocks");
  for (const Store::Entry& entry : store) {
    CHECK(read.at(entry.name).dtype() == entry.value.dtype());
    CHECK(same_bits(read.at(entry.name), entry.value));
  }
  const Blocks weight(Dtype::q6_k, {8, 256});
  const std::shared_ptr<std::byte> memory(new std::byte[weight.blocks.bytes() + 2], [](std::byte* p) { delete[] p; });
  std::memcpy(memory.get() + 2, weight.blocks.data(), weight.blocks.bytes());
  Tape tape;
  const Array moved({memory, memory.get() + 2}, Dtype::q6_k, {8, 256});
  CHECK(same_bits(fast(dequantize(tape.parameter("w", moved))), weight.floats));
}
