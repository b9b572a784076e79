#include "indexed.hpp"
#include "same_bits.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
const Integers places{3, 0, 3, 1, 2, 2, 0, 0};  // four bags of two rows

/// Returns the sums of the rows of each bag, times their factors.
Doubles naive(const Doubles& weight, const Integers& indices, const std::vector<double>& factors, std::size_t bags) {
  const std::size_t inner = weight.size() / weight.shape(0), rows = indices.size() / bags;
  Doubles y = Doubles::from_shape({bags, inner});
  y.fill(0);
  for (std::size_t k = 0; k < indices.size(); ++k)
    for (std::size_t i = 0; i < inner; ++i)
      y(k / rows, i) += factors[k] * weight.data()[static_cast<std::size_t>(indices[k]) * inner + i];
  return y;
}

/// Plays the kernel. (`value` plays the expansion.)
Array by_kernel(const Var& y) {
  Player player(y.tape(), {y});
  player.play();
  return Array(player.view(y));
}
}  // namespace

TEST_CASE("op embedding_bag: sums, means and weighted sums, as loops compute them") {
  for (const std::int64_t width : {1, 3, 17, 300}) {
    const Doubles weight = numbers({4, width}), factors = numbers({4, 2}, 1);
    const std::vector<double> given(factors.begin(), factors.end());
    for (const Dtype dtype : {Dtype::int64, Dtype::int32}) {
      const auto bags = [&](const Var& like) { return index(like, places, {4, 2}, dtype); };
      CHECK(near(played_one([&](const Vars& v) { return embedding_bag(bags(v[0]), v[0], "sum"); }, {weight}),
                 naive(weight, places, std::vector<double>(8, 1), 4), 1e-14));
      CHECK(near(played_one([&](const Vars& v) { return embedding_bag(bags(v[0]), v[0]); }, {weight}),
                 naive(weight, places, std::vector<double>(8, 0.5), 4), 1e-14));
      CHECK(near(played_one([&](const Vars& v) { return embedding_bag(bags(v[0]), v[0], v[1]); }, {weight, factors}),
                 naive(weight, places, given, 4), 1e-14));
    }
  }
}

TEST_CASE("op embedding_bag: any number of axes, and axes of size 0") {
  Tape tape(Dtype::float64);
  const auto bags = [&](const Shape& shape) { return tape.constant(Array(Dtype::int64, shape)); };
  const Var weight = ones(tape, {2, 3, 5}), none = ones(tape, {0, 3});
  CHECK(embedding_bag(bags({7}), weight, "sum").shape() == Shape{3, 5});
  CHECK(by_kernel(embedding_bag(bags({6, 4, 7}), weight, "sum")).to<double>() ==
        Doubles(7 * xt::ones<double>({6, 4, 3, 5})));
  CHECK(by_kernel(embedding_bag(bags({7}), ones(tape, {2}), "sum")).to<double>()() == 7);
  for (const char* mode : {"sum", "mean"}) {
    CHECK(by_kernel(embedding_bag(bags({4, 0}), none, mode)).to<double>() == Doubles(xt::zeros<double>({4, 3})));
    CHECK(by_kernel(embedding_bag(bags({0, 4}), weight, mode)).count() == 0);
  }
}

TEST_CASE("op embedding_bag: gradients, tangents and vmap") {
  const Doubles weight = numbers({4, 3}), factors = numbers({4, 2}, 1);
  const auto weighted = [](const Vars& v) { return embedding_bag(index(v[0], places, {4, 2}), v[0], v[1]); };
  const auto mean = [](const Vars& v) { return embedding_bag(index(v[0], places, {4, 2}), v[0]); };
  check_gradient(weighted, {weight, factors});
  check_gradient(mean, {weight});
  check_gradient(weighted, {numbers({4}), factors});
  check_gradient(
      [](const Vars& v) {
        return embedding_bag(index(v[0], {}, {4, 0}), v[0], "sum") + sum(v[0]);
      },
      {weight});
  check_jvp(weighted, {weight, factors}, {numbers({4, 3}, 2), numbers({4, 2}, 3)});
  check_jvp(mean, {weight}, {numbers({4, 3}, 2)});
  check_vmap(weighted, {numbers({3, 4, 3}), numbers({3, 4, 2}, 1)});
}

TEST_CASE("op embedding_bag: the bits do not depend on the number of threads; float32 is close to float64") {
  Integers indices;
  for (std::int64_t i = 0; i < 6000; ++i) indices.push_back(i * i % 101);
  const Doubles weight = numbers({101, 50}), factors = numbers({2000, 3}, 1);
  const auto with = [&](int threads, Dtype dtype) {
    Tape tape;
    const Var w = cast(tape.constant(weight), dtype), f = cast(tape.constant(factors), dtype);
    const Var y = cast(embedding_bag(index(w, indices, {2000, 3}), w, f), Dtype::float64);
    Player player(tape, {y}, {.threads = threads});
    player.play();
    return Doubles(player.tensor<double>(y));
  };
  CHECK(with(1, Dtype::float32) == with(2, Dtype::float32));
  CHECK(with(1, Dtype::float64) == with(2, Dtype::float64));
  CHECK(near(with(1, Dtype::float32), with(1, Dtype::float64), 1e-5));
}

TEST_CASE("op embedding_bag: tables of half precision give their sums in half precision") {
  for (const Dtype half : {Dtype::bfloat16, Dtype::float16}) {
    Tape tape;
    const Var weight = cast(tape.constant(numbers({4, 5})), half), bags = index(weight, places, {4, 2});
    const Var y = embedding_bag(bags, weight, "sum"), exact = embedding_bag(bags, cast(weight, Dtype::float32), "sum");
    CHECK(y.dtype() == half);
    CHECK(same_bits(by_kernel(y), by_kernel(cast(exact, half))));
  }
}

TEST_CASE("op embedding_bag: mistakes") {
  Tape tape;
  const Var weight = tape.input("weight", {4, 3}), bags = tape.input("bags", {5, 2}, Dtype::int64),
            factors = tape.input("factors", {5, 3});
  CHECK_THROWS_WITH_AS(
      embedding_bag(bags, weight, factors),
      doctest::Contains("per_sample_weights of shape (5, 3) must have the shape of the indices, (5, 2)"), ShapeError);
  CHECK_THROWS_WITH_AS(embedding_bag(bags, weight, "max"), doctest::Contains("mode 'max' must be 'sum' or 'mean'"),
                       Error);
  CHECK_THROWS_WITH_AS(
      apply(builtin_ops().at("embedding_bag"), {bags, weight, ones(tape, {5, 2})}, {{"mode", std::string("mean")}}),
      doctest::Contains("mode 'mean' accepts no per_sample_weights: use 'sum'"), Error);
  CHECK_THROWS_WITH_AS(embedding_bag(tape.input("number", {}, Dtype::int64), weight, "sum"),
                       doctest::Contains("must have at least one axis each"), ShapeError);
  CHECK_THROWS_AS(embedding_bag(weight, weight, "sum"), DtypeError);
  for (const std::int64_t wrong : {-1, 4}) {
    const Var y = embedding_bag(index(weight, {0, wrong}, {1, 2}), ones(tape, {4, 3}));
    const std::string why = "index " + std::to_string(wrong) + " (at flat position 1) is out of range";
    CHECK_THROWS_WITH_AS(value<float>(y), doctest::Contains(why.c_str()), Error);
    Player player(tape, {y});
    CHECK_THROWS_WITH_AS(player.play(), doctest::Contains((why + ": weight has size 4").c_str()), Error);
  }
}
