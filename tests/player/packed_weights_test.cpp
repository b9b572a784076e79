// Packed weights: players that share them give the bits of players that pack at every play.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <thread>

#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
Array random_weights(const Shape& shape, unsigned seed, Dtype dtype = Dtype::float32) {
  Array array(Dtype::float32, shape);
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<float>()[i] = numbers(bits);
  Tape tape;
  return evaluate(cast(tape.constant(array), dtype));
}

Array played_by(Player& player, const Var& result, const std::vector<Feed>& feeds) {
  player.play(feeds);
  return Array(player.view(result));
}

bool same_results(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// x -> tanh(x w) w', for `rows` rows.
struct Layer {
  explicit Layer(const Array& weight, std::int64_t rows, const PlayerOptions& options)
      : x(tape.input("x", {rows, 96})), w(tape.parameter("w", weight)), player(nullptr) {
    const Var wide = w.dtype() == Dtype::float32 ? w : cast(w, Dtype::float32);
    y = matmul(tanh(matmul(x, wide)), transpose(wide));
    player = std::make_unique<Player>(tape, Vars{y}, options);
  }
  Array run(const Array& values) { return played_by(*player, y, {{x, values}}); }

  Tape tape;
  Var x, w, y;
  std::unique_ptr<Player> player;
};

PlayerOptions with(const std::shared_ptr<PackedWeights>& packed, Precision precision) {
  PlayerOptions options;
  options.packed = packed;
  options.precision = precision;
  return options;
}
}  // namespace

TEST_CASE("players that share packed weights give the bits of players that do not") {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16})
    for (const Precision precision : {Precision::float32, Precision::bf16})
      for (const std::int64_t rows : {1, 12, 40, 200}) {
        CAPTURE(name_of(dtype));
        CAPTURE(name_of(precision));
        CAPTURE(rows);
        const Array weight = random_weights({96, 128}, 1, dtype), values = random_weights({rows, 96}, 2);
        const auto packed = make_packed_weights();
        Layer alone(weight, rows, with(nullptr, precision));
        Layer first(weight, rows, with(packed, precision)), second(weight, rows, with(packed, precision));
        Layer longer(weight, 2 * rows, with(packed, precision)), as_long(weight, 2 * rows, with(nullptr, precision));
        const Array expected = alone.run(values), twice = random_weights({2 * rows, 96}, 3);
        CHECK(same_results(first.run(values), expected));
        CHECK(same_results(first.run(values), expected));
        CHECK(same_results(second.run(values), expected));
        CHECK(same_results(longer.run(twice), as_long.run(twice)));
      }
}

TEST_CASE("convolutions by Winograd's algorithm share transformed weights") {
  struct Sizes {
    Shape x, weight;
  };
  for (const Sizes& sizes : {Sizes{{1, 16, 14, 20}, {24, 16, 3, 3}}, Sizes{{3, 20, 40}, {16, 20, 5}},
                             Sizes{{4, 32, 12, 12}, {64, 32, 3, 3}}}) {
    CAPTURE(sizes.x);
    const Array weight = random_weights(sizes.weight, 1), values = random_weights(sizes.x, 2);
    const auto packed = make_packed_weights();
    const auto found = [&](const std::shared_ptr<PackedWeights>& shared) {
      Tape tape;
      const Var x = tape.input("x", sizes.x), w = tape.parameter("w", weight);
      const Var y = sizes.x.size() == 4 ? conv2d(x, w, {}, {1}, 1) : conv1d(x, w, {}, {1}, 1);
      const Var dx = grad(sum(square(y)), x);
      Player player(tape, {y, dx}, with(shared, Precision::float32));
      player.play({{x, values}});
      return std::pair{played_by(player, y, {{x, values}}), Array(player.view(dx))};
    };
    const auto [y, dx] = found(nullptr);
    for (int i = 0; i < 2; ++i) {
      const auto [of_packed, dx_of_packed] = found(packed);
      CHECK(same_results(y, of_packed));
      CHECK(same_results(dx, dx_of_packed));
    }
  }
}

TEST_CASE("packed weights are packed again after repack") {
  Array weight = random_weights({96, 128}, 1);
  const Array values = random_weights({40, 96}, 2);
  const auto packed = make_packed_weights();
  Layer layer(weight, 40, with(packed, Precision::float32)), alone(weight, 40, with(nullptr, Precision::float32));
  const Array before = layer.run(values);
  weight.as<float>()[5] += 1;
  repack(*packed);
  const Array after = layer.run(values);
  CHECK(!same_results(before, after));
  CHECK(same_results(after, alone.run(values)));
}

TEST_CASE("players of several threads share packed weights") {
  const Array weight = random_weights({96, 128}, 1), values = random_weights({40, 96}, 2);
  const auto packed = make_packed_weights();
  PlayerOptions options = with(packed, Precision::float32);
  options.threads = 1;
  const Array expected = Layer(weight, 40, with(nullptr, Precision::float32)).run(values);
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i = 0; i < 4; ++i) layers.push_back(std::make_unique<Layer>(weight, 40, options));
  std::vector<int> agree(layers.size(), 0);
  for (int round = 0; round < 20; ++round) {
    repack(*packed);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < layers.size(); ++i)
      threads.emplace_back([&, i] { agree[i] += same_results(layers[i]->run(values), expected); });
    for (std::thread& thread : threads) thread.join();
  }
  for (const int count : agree) CHECK(count == 20);
}
