// DP-SGD: trains a classifier of points in a plane without revealing any one of them (Abadi et al., 2016). Each update
// draws examples by chance, clips the gradient of each, and adds noise to their sum; the accountant says what that
// reveals.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <xtape/xtape.hpp>
using namespace xtape;

constexpr int examples = 4000, updates = 1000, most = 200;  // `most` is ten standard deviations above the expected batch
constexpr double expected = 100, sample_rate = expected / examples, clip_norm = 1, noise_multiplier = 1.5, delta = 1e-5;

int main() {
  // Data: is a point inside a ring?
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<float> place(-2, 2);
  xt::xarray<float> points = xt::zeros<float>({examples, 2}), inside = xt::zeros<float>({examples});
  for (int i = 0; i < examples; ++i) {
    const float x = points(i, 0) = place(generator), y = points(i, 1) = place(generator);
    inside(i) = std::abs(std::hypot(x, y) - 1.2F) < 0.5F ? 1 : 0;
  }

  Tape tape;
  Store weights;
  std::normal_distribution<float> normal;
  const auto weight = [&](const char* name, const Shape& shape, float scale) {
    Array array = weights.add(name, Array(Dtype::float32, shape));
    std::generate_n(array.as<float>(), array.count(), [&] { return scale * normal(generator); });
    return tape.parameter(weights, name);
  };
  const Vars w = {weight("in", {2, 64}, 1), weight("in.bias", {64}, 1), weight("out", {64}, 0.2F),
                  weight("out.bias", {}, 0)};
  const auto logit = [&](const Var& point) { return sum(tanh(matmul(point, w[0]) + w[1]) * w[2]) + w[3]; };

  // A batch has a varying number of examples: `used` is 0 for the rest of the rows, whose gradients are 0.
  const Var x = tape.input("x", {most, 2}), y = tape.input("y", {most}), used = tape.input("used", {most});
  const ExampleLoss loss = [&](const Vars& one) {
    const Var z = logit(one[0]);
    return (softplus(z) - z * one[1]) * one[2];
  };
  const ClippedGradients clipped = clipped_gradients(loss, w, {x, y, used}, clip_norm);
  const Vars gradients = with_noise(clipped.gradients, noise_multiplier * clip_norm);

  Player player(tape, gradients);
  Optimizer adam(weights, OptimizerOptions());
  PrivacyAccountant accountant;
  std::bernoulli_distribution drawn(sample_rate);  // Poisson sampling: each example on its own
  for (int update = 0; update < updates; ++update) {
    xt::xarray<float> batch = xt::zeros<float>({most, 2}), labels = xt::zeros<float>({most}), mask = labels;
    int count = 0;
    for (int i = 0; i < examples; ++i) {
      if (!drawn(generator)) continue;
      if (count == most) throw Error("more examples were drawn than a batch holds");
      batch(count, 0) = points(i, 0);
      batch(count, 1) = points(i, 1);
      labels(count) = inside(i);
      mask(count++) = 1;
    }
    player.play({{x, batch}, {y, labels}, {used, mask}});
    std::vector<ArrayView> views;
    for (const Var& gradient : gradients) views.push_back(player.view(gradient));
    adam.update(views, 0.02, 1 / expected);  // not by the number drawn, which would reveal it
    accountant.count(noise_multiplier, sample_rate);
    if ((update + 1) % 250 == 0)
      std::cout << "update " << update + 1 << ": epsilon " << accountant.epsilon(delta) << " for delta " << delta
                << '\n';
  }

  const Var all = tape.input("all", {examples, 2});
  const Var z = vmap([&](const Vars& one) { return Vars{logit(one[0])}; }, {all})[0];
  const xt::xarray<float> found = evaluate(z, {{all, points}}).to<float>();
  int right = 0;
  for (int i = 0; i < examples; ++i) right += (found(i) > 0) == (inside(i) > 0) ? 1 : 0;
  const double accuracy = static_cast<double>(right) / examples;
  std::cout << "accuracy " << accuracy << '\n';
  return accuracy > 0.9 && accountant.epsilon(delta) < 3 ? 0 : 1;
}
