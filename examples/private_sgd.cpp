// DP-SGD: trains a classifier of points in a plane without revealing any single point (Abadi et al., 2016). Each update
// draws a random sample of examples, clips the gradient of each example, and adds noise to their sum. The accountant
// computes the privacy loss.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

constexpr std::int64_t examples = 4000, rows = 200;  // ten standard deviations more than an update draws on average
constexpr double expected = 100, sample_rate = expected / examples, clip_norm = 1, noise = 1.5, delta = 1e-5;

int main() try {
  Tape tape;
  const Var points = tape.constant(evaluate(uniform(tape, {examples, 2}, -2, 2)));
  const Var inside = cast(abs(sqrt(sum(square(points), 1)) - 1.2) < 0.5, Dtype::float32);  // 1 in a ring, otherwise 0

  Parameters p(tape, 1);
  const auto logit = [&](const Var& point) {
    return nn::linear(p / "out", tanh(nn::linear(p / "hidden", point, 64, true, init::normal(2))), 1).at("...", 0);
  };
  const Var accuracy = mean((logit(points) > 0) == (inside > 0));
  const ExampleLoss loss = [&](const Vars& one) {
    return one[2] * binary_cross_entropy_with_logits(logit(one[0]), one[1]);
  };
  // Poisson sampling draws each example independently. `used` is 0 for padding rows, so that their gradients are 0.
  const auto [used, drawn] = top_k(cast(bernoulli(tape, {examples}, sample_rate), Dtype::float32), rows);
  const Vars batch = {take(points, drawn), take(inside, drawn), used};
  const Vars gradients = with_noise(clipped_gradients(loss, p.list(), batch, clip_norm).gradients, noise * clip_norm);

  Player player(tape, gradients);
  Optimizer adam(p, Adam{});
  PrivacyAccountant accountant;
  for (int update = 1; update <= 1000; ++update) {
    player.play();
    std::vector<ArrayView> views;
    for (const Var& gradient : gradients) views.push_back(player.view(gradient));
    adam.update(views, 0.02, 1 / expected);  // the divisor is not the number of drawn examples, which is secret
    accountant.count(noise, sample_rate);
    if (update % 250 == 0) std::cout << "update " << update << ": epsilon " << accountant.epsilon(delta) << '\n';
  }
  std::cout << "accuracy " << evaluate(accuracy)() << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
