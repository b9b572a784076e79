// A convolutional network for handwritten digits of 8 x 8 pixels, with batch normalisation.
// usage: digits examples/data/digits.safetensors
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

Var network(const Parameters& p, const Var& images) {
  Var x = expand_dims(cast(images, Dtype::float32) / 255, 1);  // [b, 1, 8, 8]
  for (int i = 0; i < 2; ++i) {
    x = nn::batch_norm(p / "norm" / i, nn::conv2d(p / "conv" / i, x, 16 << i, 3, 1, "same"));
    x = max_pool2d(relu(x), 2);
  }
  return nn::linear(p / "out", reshape(x, {x.size(0), -1}), 10);
}

int main(int argc, char** argv) try {
  if (argc != 2) throw Error("usage: digits examples/data/digits.safetensors");
  const Store digits = load_arrays(argv[1]);
  const auto [x, held_x, y, held_y] = split_rows(0.8, 1, digits.at("images"), digits.at("labels"));

  Tape tape, evaluation(Mode::eval);
  Parameters p(tape, 1);
  const Var images = tape.input("images", {64, 8, 8}, Dtype::int32), labels = tape.input("labels", {64}, Dtype::int32);
  Vars results = {cross_entropy(network(p, images), labels)};
  for (const auto& statistic : p.updates()) results.push_back(statistic.value);
  const Var prediction = argmax(network({evaluation, p}, evaluation.constant(held_x)));
  const Var accuracy = mean(prediction == evaluation.constant(held_y));

  Step step(results, p, AdamW{3e-3});
  auto data = batches({64, 1, true, true}, x, y);
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (auto [bx, by] : data) {
      step({{images, bx}, {labels, by}});
      p.update(step.player());
    }
    std::cout << "epoch " << epoch << ": held-out accuracy " << evaluate(accuracy)() << '\n';
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
