// Fine-tunes a network from an ONNX file, and writes the new weights back, for ONNX Runtime and others. The network was
// trained on the digits 0 to 4 (examples/data/digits_onnx.py); it learns the others here.
// usage: finetune_onnx examples/data/digits.onnx examples/data/digits.safetensors tuned.onnx
#include <iostream>
#include <xtape/onnx.hpp>
#include <xtape/xtape.hpp>
using namespace xtape;

int main(int argc, char** argv) try {
  if (argc != 4) throw Error("usage: finetune_onnx MODEL.onnx DIGITS.safetensors TUNED.onnx");
  const OnnxModel model = open_onnx(argv[1]);
  const Store digits = load_arrays(argv[2]);
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
  save_onnx_weights(argv[3], argv[1], model.weights());
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
