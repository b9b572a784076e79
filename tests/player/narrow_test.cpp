// Arrays of bfloat16, float16 and int8: what ops compute with them, and that products and look-ups read them as they
// are.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "same_bits.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
template <class T>
Array random_array(const Shape& shape, unsigned seed, double reach = 1) {
  Array array(dtype_of<T>(), shape);
  std::mt19937 bits(seed);
  std::uniform_real_distribution<double> numbers(-reach, reach);
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<T>()[i] = static_cast<T>(numbers(bits));
  return array;
}

Array played(const Var& var, const PlayerOptions& options = {}) {
  Player player(var.tape(), {var}, options);
  player.play();
  return Array(player.view(var));
}

/// The steps of the plan, by op.
std::string steps_of(const Var& var) {
  std::string text;
  Player player(var.tape(), {var});
  for (const Plan::Step& step : player.plan().steps) text += step.op + " ";
  return text;
}

/// The largest distance of two float32 arrays, relative to the largest number of the second.
double distance(const Array& a, const Array& b) {
  double apart = 0, most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(a.as<float>()[i]) - b.as<float>()[i]));
    most = std::max(most, std::abs(static_cast<double>(b.as<float>()[i])));
  }
  return apart / most;
}
}  // namespace

TEST_CASE_TEMPLATE("an op on halves computes in float32 and rounds its result", H, bfloat16, float16) {
  Tape tape;
  const Var x = tape.parameter("x", random_array<H>({6, 8}, 1));
  const Var y = tape.parameter("y", random_array<H>({6, 8}, 2));
  const Var w = tape.parameter("w", random_array<H>({8}, 3));
  const Var mask = tape.constant(xt::xarray<bool>{true, false, true, true, false, true, false, true});
  const Var rows = tape.constant(xt::xarray<std::int64_t>{5, 0, 2});
  const std::pair<const char*, std::function<Var(const Var&, const Var&, const Var&)>> calls[] = {
      {"add", [](const Var& a, const Var& b, const Var&) { return a + b; }},
      {"mul by a literal", [](const Var& a, const Var&, const Var&) { return a * 0.5; }},
      {"exp", [](const Var& a, const Var&, const Var&) { return exp(a); }},
      {"gelu", [](const Var& a, const Var&, const Var&) { return gelu(a); }},
      {"maximum", [](const Var& a, const Var& b, const Var&) { return maximum(a, b); }},
      {"where", [&](const Var& a, const Var& b, const Var&) { return where(mask, a, b); }},
      {"masked_fill", [&](const Var& a, const Var&, const Var&) { return masked_fill(a, mask, -2); }},
      {"clip", [](const Var& a, const Var&, const Var&) { return clip(a, -0.25, 0.5); }},
      {"sum", [](const Var& a, const Var&, const Var&) { return sum(a, {1}); }},
      {"max", [](const Var& a, const Var&, const Var&) { return max(a, {0}); }},
      {"softmax", [](const Var& a, const Var&, const Var&) { return softmax(a); }},
      {"log_softmax", [](const Var& a, const Var&, const Var&) { return log_softmax(a, 0); }},
      {"layer_norm", [](const Var& a, const Var&, const Var& g) { return layer_norm(a, g, g); }},
      {"rms_norm", [](const Var& a, const Var&, const Var& g) { return rms_norm(a, g); }},
      {"einsum",
       [](const Var& a, const Var& b, const Var&) {
         return einsum("ik,jk->ij", Vars{a, b});
       }},
      {"take", [&](const Var& a, const Var&, const Var&) { return take(a, rows); }},
      {"slice",
       [](const Var& a, const Var&, const Var&) {
         return slice(a, {1, 2}, {5, 7}, {2, 1});
       }},
      {"transpose", [](const Var& a, const Var&, const Var&) { return transpose(a); }},
      {"concat",
       [](const Var& a, const Var& b, const Var&) {
         return concat({a, b}, 1);
       }},
      {"pad",
       [](const Var& a, const Var&, const Var&) {
         return pad(a, {1, 0}, {0, 2}, 3);
       }},
      {"cumsum", [](const Var& a, const Var&, const Var&) { return cumsum(a, 1); }},
      {"tril", [](const Var& a, const Var&, const Var&) { return tril(a); }},
      {"index_add", [&](const Var& a, const Var& b, const Var&) { return index_add(a, 0, rows, take(b, rows)); }},
      {"update_slice",
       [](const Var& a, const Var& b, const Var&) { return update_slice(a, slice(b, {0, 0}, {2, 2}), {3, 3}); }},
      {"zeros_like", [](const Var& a, const Var& b, const Var&) { return zeros_like(a) + b; }},
  };
  const auto wide = [](const Var& var) { return cast(var, Dtype::float32); };
  for (const auto& each : calls) {
    CAPTURE(each.first);
    const auto& call = each.second;
    const Var narrow = call(x, y, w);
    CHECK(narrow.dtype() == dtype_of<H>());
    // Literals are rounded too; those above are numbers of both formats.
    CHECK(same_bits(played(narrow), played(cast(call(wide(x), wide(y), wide(w)), dtype_of<H>()))));
    PlayerOptions reference;
    reference.passes = Passes::reference();
    CHECK(distance(played(wide(narrow), reference), played(wide(narrow))) < 0.02);
  }
}

TEST_CASE_TEMPLATE("ops that are made of others, and definitions of ops, compute with halves in float32", H, bfloat16,
                   float16) {
  // Squares and sums of these are beyond the range of float16, or the smallest numbers of the formulas are below it.
  Tape tape;
  const Var x = tape.parameter("x", random_array<H>({8, 128}, 1, 600));
  const Var y = tape.parameter("y", random_array<H>({8, 128}, 2, 600));
  const Var none = tape.parameter("none", Array(dtype_of<H>(), {8, 128}));
  const std::pair<const char*, std::function<Var(const Var&, const Var&, const Var&)>> calls[] = {
      {"vector_norm", [](const Var& a, const Var&, const Var&) { return vector_norm(a, 2, {1}); }},
      {"standard_deviation", [](const Var& a, const Var&, const Var&) { return standard_deviation(a, {1}); }},
      {"cosine_similarity", [](const Var& a, const Var& b, const Var&) { return cosine_similarity(a, b); }},
      {"cosine_similarity of zeros", [](const Var&, const Var&, const Var& z) { return cosine_similarity(z, z); }},
      {"group_norm", [](const Var& a, const Var&, const Var&) { return group_norm(a, 4); }},
      {"logsumexp", [](const Var& a, const Var&, const Var&) { return logsumexp(a, {1}); }},
      {"huber_loss", [](const Var& a, const Var& b, const Var&) { return huber_loss(a, b); }},
      {"layer_norm", [](const Var& a, const Var&, const Var&) { return layer_norm(a); }},
      {"rms_norm", [](const Var& a, const Var&, const Var&) { return rms_norm(a); }},
      {"mean", [](const Var& a, const Var&, const Var&) { return mean(abs(a)); }},
      {"softmax", [](const Var& a, const Var&, const Var&) { return softmax(a); }},
  };
  PlayerOptions reference;
  reference.passes = Passes::reference();
  const auto wide = [](const Var& var) { return cast(var, Dtype::float32); };
  for (const auto& each : calls) {
    CAPTURE(each.first);
    const Var narrow = each.second(x, y, none);
    CHECK(narrow.dtype() == dtype_of<H>());
    const Array exact = played(cast(each.second(wide(x), wide(y), wide(none)), dtype_of<H>()));
    CHECK(same_bits(played(narrow), exact));
    const Array defined = played(narrow, reference);
    for (std::int64_t i = 0; i < exact.count(); ++i) {  // sums of another order
      const float found = defined.as<H>()[i], expected = exact.as<H>()[i];
      const float step = dtype_of<H>() == Dtype::float16 ? 0x1p-10f : 0x1p-7f;
      CHECK(std::abs(found - expected) <= std::abs(expected) * step + 1e-30f);
    }
  }
  // The gradient of a norm is x / norm.
  const Array slope = played(cast(grad(sum(vector_norm(x, 2, {1})), {x})[0], Dtype::float32));
  const Array expected = played(cast(grad(sum(vector_norm(wide(x), 2, {1})), {x})[0], Dtype::float32));
  CHECK(distance(slope, expected) < 0.01);
}

TEST_CASE_TEMPLATE("attention and its gradient read halves and int8 arrays as they are", H, bfloat16, float16) {
  for (const std::int64_t length : {5, 160}) {
    CAPTURE(length);
    Tape tape;
    const Shape shape{2, length, 3, 32};
    const Var q = tape.parameter("q", random_array<H>(shape, 1));
    const Var k = tape.parameter("k", random_array<std::int8_t>(shape, 2, 3));
    const Var v = tape.parameter("v", random_array<H>(shape, 3));
    const Var dy = tape.parameter("dy", random_array<H>(shape, 4));
    xt::xarray<bool> later = xt::zeros<bool>({length, length});
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t j = i + 1; j < length; ++j) later(i, j) = true;
    const Var future = tape.constant(later);
    const auto results = [&](const std::function<Var(const Var&)>& read) {
      const Vars from{read(q), read(k), read(v)};
      const Var scores = einsum("bqhd,bkhd->bhqk", Vars{from[0], from[1]}) * 0.2;
      const Var weights = softmax(masked_fill(scores, future, -std::numeric_limits<double>::infinity()));
      const Var y = einsum("bhqk,bkhd->bqhd", Vars{weights, from[2]});
      Vars all = grad(sum(y * read(dy)), from);
      all.push_back(y);
      return all;
    };
    const Vars narrow = results([](const Var& var) { return cast(var, Dtype::float32); });
    const Vars wide = results([&](const Var& var) {
      const Var widened = cast(var, Dtype::float32);
      return tape.parameter("wide " + var.node().name, evaluate(widened));
    });
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(played(narrow[i]), played(wide[i])) < 1e-6);
    }
    CHECK(steps_of(narrow.back()).find("attention") != std::string::npos);
    CHECK(steps_of(narrow.back()).find("cast") == std::string::npos);
    CHECK(steps_of(narrow[0]).find("attention_grad") != std::string::npos);
  }
}

TEST_CASE_TEMPLATE("attention of one query reads it as a half", H, bfloat16, float16) {
  Tape tape;
  const Var q = tape.parameter("q", random_array<H>({2, 1, 3, 40}, 1));
  const Var k = tape.parameter("k", random_array<float>({2, 70, 3, 40}, 2));
  const Var v = tape.parameter("v", random_array<float>({2, 70, 3, 24}, 3));
  const auto attended = [&](const Var& query) {
    return einsum("bhqk,bkhd->bqhd", Vars{softmax(einsum("bqhd,bkhd->bhqk", Vars{query, k}) * 0.2), v});
  };
  const Var narrow = attended(cast(q, Dtype::float32));
  CHECK(steps_of(narrow) == "attention ");
  const Var wide = tape.parameter("wide", evaluate(cast(q, Dtype::float32)));
  CHECK(same_bits(played(narrow), played(attended(wide))));
}

TEST_CASE_TEMPLATE("random ops draw the same numbers for halves as for float32", H, bfloat16, float16) {
  Tape tape(Mode::train);
  const Var u = uniform(tape, {40}, 0, 1, dtype_of<H>());
  CHECK(u.dtype() == dtype_of<H>());
  CHECK(played(u).template as<H>()[3] != played(u).template as<H>()[4]);
  const Var x = tape.parameter("x", random_array<H>({16, 16}, 1));
  const Array dropped = played(dropout(x, 0.5));
  int zeros = 0;
  for (int i = 0; i < 256; ++i) zeros += dropped.template as<H>()[i] == 0.0f;
  CHECK(zeros > 90);
  CHECK(zeros < 166);
}

TEST_CASE_TEMPLATE("gradients with respect to halves are halves and agree with float32", H, bfloat16, float16) {
  Tape tape;
  const Var x = tape.parameter("x", random_array<H>({20, 30}, 1));
  const Var w = tape.parameter("w", random_array<H>({30, 40}, 2));
  const auto loss = [](const Var& a, const Var& b) { return sum(square(tanh(matmul(a, b)))); };
  const Vars narrow = grad(loss(x, w), {x, w});
  const Var x32 = cast(x, Dtype::float32), w32 = cast(w, Dtype::float32);
  const Vars wide = grad(loss(x32, w32), {x32, w32});
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(narrow[i].dtype() == dtype_of<H>());
    CHECK(distance(played(cast(narrow[i], Dtype::float32)), played(wide[i])) < 0.02);
  }
}

TEST_CASE("an op of int8 gives int8 when it is played by its definition") {
  Tape tape;
  const Var q = tape.parameter("q", random_array<std::int8_t>({3, 3}, 3, 127));
  const Var lower = tril(q);
  PlayerOptions options;
  options.passes = Passes::reference();
  Player player(tape, {lower}, options);
  player.play();
  const Array found(player.view(lower));
  REQUIRE(found.dtype() == Dtype::int8);
  const std::int8_t* numbers = q.node().storage.as<std::int8_t>();
  for (std::int64_t i = 0; i < 9; ++i) CHECK(found.as<std::int8_t>()[i] == (i / 3 >= i % 3 ? numbers[i] : 0));
}

TEST_CASE("halves with float32 or each other give float32; with float64 they are an error; int8 counts as int32") {
  Tape tape;
  const Var b = tape.parameter("b", random_array<bfloat16>({3}, 1)),
            h = tape.parameter("h", random_array<float16>({3}, 4)),
            f = tape.parameter("f", random_array<float>({3}, 2));
  CHECK((b + f).dtype() == Dtype::float32);
  CHECK((f + h).dtype() == Dtype::float32);
  CHECK((b + h).dtype() == Dtype::float32);
  CHECK(concat({h, b, h}).dtype() == Dtype::float32);
  CHECK(same_bits(played(b * h), played(cast(b, Dtype::float32) * cast(h, Dtype::float32))));
  CHECK((b + 1).dtype() == Dtype::bfloat16);
  CHECK((h + 1).dtype() == Dtype::float16);
  CHECK((h + tape.constant(1, Dtype::int64)).dtype() == Dtype::float16);
  const Var d = tape.parameter("d", random_array<double>({3}, 2));
  CHECK_THROWS_WITH_AS(b + d, "add: mixes bfloat16 and float64: cast one of them", DtypeError);
  CHECK_THROWS_WITH_AS(d + h, "add: mixes float64 and float16: cast one of them", DtypeError);
  const Var q = tape.parameter("q", random_array<std::int8_t>({3}, 3, 127));
  CHECK((q + q).dtype() == Dtype::int32);
  CHECK(same_bits(played(q * q), played(cast(q, Dtype::int32) * cast(q, Dtype::int32))));
  CHECK((q * f).dtype() == Dtype::float32);
  CHECK(sum(q).dtype() == Dtype::int64);
  CHECK_THROWS_AS(tape.constant(128, Dtype::int8), DtypeError);
  CHECK_THROWS_WITH_AS(h * 1e5,
                       "mul: the literal 100000 does not fit float16, which holds numbers from -65504 to 65504: use "
                       "float32",
                       DtypeError);
  CHECK_THROWS_AS(masked_fill(h, h > 0, -1e9), DtypeError);
  CHECK_THROWS_AS(clip(h, 0, 1e9), DtypeError);
  CHECK(std::isinf(float(*played(h * std::numeric_limits<double>::infinity()).as<float16>())));
  for (const Dtype half : {Dtype::bfloat16, Dtype::float16}) CHECK_THROWS_AS(tape.set_default_dtype(half), DtypeError);
  CHECK(played(cast(tape.constant(xt::xarray<float>{-1000, 3.7f, 1000}), Dtype::int8)).to<std::int8_t>() ==
        xt::xarray<std::int8_t>{-128, 3, 127});
}

TEST_CASE_TEMPLATE("a product with halves has the bits of one with the same numbers as float32", H, bfloat16, float16) {
  for (const std::int64_t rows : {1, 3, 8, 20, 64}) {
    CAPTURE(rows);
    for (const bool turned : {false, true}) {
      Tape tape;
      const Var x = tape.parameter("x", random_array<float>({rows, 96}, 1));
      const Var w = tape.parameter("w", random_array<H>(turned ? Shape{70, 96} : Shape{96, 70}, 2, 4));
      const Var wide = tape.parameter("wide", evaluate(cast(w, Dtype::float32)));
      const char* equation = turned ? "rk,ck->rc" : "rk,kc->rc";
      CHECK(same_bits(played(einsum(equation, Vars{x, w})), played(einsum(equation, Vars{x, wide}))));
    }
  }
}

TEST_CASE("products read halves and int8 weights as they are, for any number of rows") {
  for (const std::int64_t rows : {1, 3, 20, 64, 200})
    for (const bool turned : {false, true})
      for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16, Dtype::int8}) {
        CAPTURE(rows);
        CAPTURE(turned);
        CAPTURE(name_of(dtype));
        Tape tape;
        const Var x = tape.parameter("x", random_array<float>({rows, 96}, 1));
        const Shape shape = turned ? Shape{80, 96} : Shape{96, 80};
        const Var w = tape.parameter("w", dtype == Dtype::int8      ? random_array<std::int8_t>(shape, 2, 127)
                                          : dtype == Dtype::float16 ? random_array<float16>(shape, 2)
                                                                    : random_array<bfloat16>(shape, 2));
        const char* equation = turned ? "rk,ck->rc" : "rk,kc->rc";
        const Var product = einsum(equation, Vars{x, w});
        CHECK(steps_of(product) == "einsum ");
        PlayerOptions casts;
        casts.passes.fuse = false;
        CHECK(distance(played(product), played(product, casts)) < 1e-6);
        PlayerOptions one;
        one.threads = 1;
        CHECK(same_bits(played(product), played(product, one)));
      }
}

TEST_CASE_TEMPLATE("both factors may be narrow, strided, small or summed onto another array", Pair,
                   std::pair<bfloat16, bfloat16>, std::pair<float16, float16>, std::pair<float16, bfloat16>,
                   std::pair<std::int8_t, float16>) {
  using H = typename Pair::first_type;
  using Other = typename Pair::second_type;
  Tape tape;
  const Var a = tape.parameter("a", random_array<H>({4, 10, 12, 16}, 1, dtype_of<H>() == Dtype::int8 ? 100 : 1));
  const Var b = tape.parameter("b", random_array<Other>({4, 9, 12, 16}, 2));
  const Var c = tape.parameter("c", random_array<float>({4, 12, 10, 9}, 3));
  PlayerOptions casts;
  casts.passes.fuse = false;
  const auto wide = [](const Var& var) { return cast(var, Dtype::float32); };
  for (const Var& var :
       {einsum("bqhd,bkhd->bhqk", Vars{wide(a), wide(b)}), c + einsum("bqhd,bkhd->bhqk", Vars{wide(a), wide(b)}),
        einsum("bqhd,bkhd->bhqk", Vars{wide(a), wide(b)}) + c, einsum("bqhd,bqhd->bqh", Vars{wide(a), wide(a)})})
    CHECK(distance(played(var), played(var, casts)) < 1e-6);
}

TEST_CASE("dequantize scales results: of products along the axes that are not summed, and of take") {
  Tape tape;
  const Var q = tape.parameter("q", random_array<std::int8_t>({30, 24}, 1, 127));
  const Var of_rows = tape.parameter("rows", random_array<float>({30, 1}, 2));
  const Var of_columns = tape.parameter("columns", random_array<float>({1, 24}, 3));
  const Var x = tape.parameter("x", random_array<float>({5, 30}, 4)),
            y = tape.parameter("y", random_array<float>({5, 24}, 5));
  const Var ids = tape.constant(xt::xarray<std::int64_t>{{3, 29}, {0, 3}});
  PlayerOptions plain;
  plain.passes.fuse = false;
  const auto check = [&](const Var& var, const char* steps) {
    CHECK(steps_of(var) == steps);
    CHECK(distance(played(var), played(var, plain)) < 1e-6);
    PlayerOptions reference;
    reference.passes = Passes::reference();
    CHECK(distance(played(var), played(var, reference)) < 1e-6);
  };
  check(einsum("rk,kc->rc", Vars{x, dequantize(q, of_columns)}), "einsum mul ");
  check(einsum("rc,kc->rk", Vars{y, dequantize(q, of_rows)}), "einsum mul ");
  check(einsum("kc,rc->kr", Vars{dequantize(q, of_rows), y}), "einsum mul ");
  check(einsum("rk,kc->rc", Vars{x, dequantize(q, of_rows)}), "dequantize einsum ");  // the scale is summed over
  check(take(dequantize(q, of_rows), ids), "take take cast+mul ");
  check(take(dequantize(q, of_columns), ids), "take cast+mul ");
  check(relu(einsum("rk,kc->rc", Vars{x, dequantize(q, of_columns)}) + of_columns), "einsum mul+add+relu ");
}

TEST_CASE_TEMPLATE("halves are looked up and transposed before they are widened", H, bfloat16, float16) {
  Tape tape;
  const Var w = cast(tape.parameter("w", random_array<H>({50, 24}, 1)), Dtype::float32);
  const Var ids = tape.constant(xt::xarray<std::int64_t>{3, 49, 0});
  CHECK(steps_of(take(w, ids)) == "take cast ");
  const Var x = tape.parameter("x", random_array<float>({2, 24}, 2));
  CHECK(steps_of(matmul(x, transpose(w))) == "einsum ");
  PlayerOptions casts;
  casts.passes.fuse = false;
  CHECK(same_bits(played(take(w, ids)), played(take(w, ids), casts)));
}
