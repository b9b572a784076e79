// Fine-tunes a network from an ONNX file, and writes the new weights back, for ONNX Runtime and others. The network was
// trained on the digits 0 to 4 (examples/data/digits_onnx.py); it learns the others here.
// usage: finetune_onnx examples/data/digits.onnx examples/data/digits.safetensors tuned.onnx
#include <iostream>
#include <xtape/onnx.hpp>
#include <xtape/xtape.hpp>
using namespace xtape;

int main(int, char** arguments) {
  const OnnxModel model = open_onnx(arguments[1]);
  const Store digits = load_arrays(arguments[2]);
  const auto [x, held_x, y, held_y] = split_rows(0.8, 1, digits.at("images"), digits.at("labels"));

  const auto scores = [&](const Var& images) { return model.record(images.tape(), {cast(images, Dtype::float32)})[0]; };
  Compiled accuracy([&](Var images, Var labels) { return mean(argmax(scores(images)) == labels); });
  const auto held_out = [&] { return accuracy({held_x, held_y})[0](); };
  Step step([&](Var images, Var labels) { return cross_entropy(scores(images), labels); }, model.weights(),
            {{"conv.*", AdamW{1e-3}}, {"*", AdamW{3e-3}}});
  std::cout << "held-out accuracy before: " << held_out() << '\n';
  auto data = batches(64, 1, x, y);
  for (int epoch = 0; epoch < 40; ++epoch) {
    for (auto [bx, by] : data) step({bx, by});
    if (epoch % 10 == 9) std::cout << "after epoch " << epoch << ": " << held_out() << '\n';
  }
  save_onnx_weights(arguments[3], arguments[1], model.weights());
  return held_out() > 0.9 ? 0 : 1;
}
