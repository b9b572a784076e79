// A variational autoencoder (Kingma and Welling, 2014) of handwritten digits of 8 x 8 pixels.
// usage: vae examples/data/digits.safetensors
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

Var network(const Parameters& p, const Var& x, std::int64_t out) {
  return nn::linear(p / "out", relu(nn::linear(p / "hidden", x, 128)), out);
}

Var loss_of(const Parameters& p, const Var& images) {
  const Var x = reshape(cast(images, Dtype::float32) / 255, {-1, 64});
  const Vars latent = split(network(p / "encoder", x, 16), 2, 1);
  const Var mean = latent[0], log_variance = latent[1], z = normal(mean, exp(log_variance / 2));
  const Var rebuilt = binary_cross_entropy_with_logits(network(p / "decoder", z, 64), x, "sum");
  const Var divergence = 0.5 * sum(exp(log_variance) + square(mean) - 1 - log_variance);
  return (rebuilt + divergence) / x.size(0);
}

int main(int argc, char** argv) try {
  if (argc != 2) throw Error("usage: vae examples/data/digits.safetensors");
  const Store digits = load_arrays(argv[1]);
  Tape tape;
  Parameters p(tape, 1);
  const Var x = tape.input("x", {64, 8, 8}, Dtype::int32);
  const Var samples = sigmoid(network(p / "decoder", randn(tape, {4, 8}), 64));
  Step step(loss_of(p, x), p, Adam{2e-3});
  auto data = batches({64, 1, true, true}, digits.at("images"));
  for (int epoch = 0; epoch < 20; ++epoch) {
    double loss = 0;
    for (auto [images] : data) loss += step({{x, images}}) / static_cast<double>(data.size());
    std::cout << "epoch " << epoch << ": -ELBO " << loss << '\n';
  }
  const Array drawn = evaluate(samples);
  for (int row = 0; row < 8; ++row, std::cout << '\n')
    for (int image = 0; image < 4; ++image, std::cout << "  ")
      for (int i = 0; i < 8; ++i) std::cout << " .:*#"[static_cast<int>(4.99 * drawn(image, 8 * row + i))];
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
