// Convolutions of ResNet-20 (batch 32) and of a character CNN, float32: the forward pass, and a training step, which is
// the loss sum(square(y)) with the gradients of x and the weight. Prints the least milliseconds.
//
// usage: convolution [--threads N] [--seconds S] [--name NAME]
#include "xtape/ops/convolution.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
struct Layer {
  const char* name;
  Shape x, weight;
};
const std::vector<Layer> layers = {{"16x32x32", {32, 16, 32, 32}, {16, 16, 3, 3}},
                                   {"32x16x16", {32, 32, 16, 16}, {32, 32, 3, 3}},
                                   {"64x8x8", {32, 64, 8, 8}, {64, 64, 3, 3}},
                                   {"characters", {16, 256, 256}, {256, 256, 7}}};

Array filled(const Shape& shape) {
  Array values(Dtype::float32, shape);
  for (std::int64_t i = 0; i < values.count(); ++i)
    values.as<float>()[i] = 0.002F * static_cast<float>((i * 7919) % 101 - 50);
  return values;
}

double measured(const Layer& layer, bool step, int threads, double seconds) {
  Tape tape;
  const Array x_values = filled(layer.x), weight_values = filled(layer.weight);
  const Var x = tape.input("x", layer.x), weight = tape.input("weight", layer.weight);
  const Var y = layer.x.size() == 3 ? conv1d(x, weight, {}, {1}, "same") : conv2d(x, weight, {}, {1}, "same");
  const Var loss = sum(square(y));
  Vars outputs{y};
  if (step) {
    outputs = grad(loss, {x, weight});
    outputs.push_back(loss);
  }
  PlayerOptions options;
  options.threads = threads;
  Player player(tape, outputs, options);
  const std::vector<Feed> feeds{{x, x_values}, {weight, weight_values}};
  return bench::best_of(seconds, [&] { player.play(feeds); });
}
}  // namespace

int main(int count, char** arguments) {
  int threads = 1;
  double seconds = 1;
  std::string only;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = arguments[i];
    if (word == "--threads") threads = std::atoi(arguments[i + 1]);
    if (word == "--seconds") seconds = std::atof(arguments[i + 1]);
    if (word == "--name") only = arguments[i + 1];
  }
  for (const Layer& layer : layers)
    for (const bool step : {false, true}) {
      const std::string name = std::string(layer.name) + (step ? "_step" : "_forward");
      if (only.empty() || only == name) std::printf("%s %.4f\n", name.c_str(), measured(layer, step, threads, seconds));
    }
}
