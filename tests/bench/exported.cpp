// An ONNX file: opening it, playing it with packed weights, and playing the gradients of the sum of squares of its
// first output by all weights. Integers are fed as token numbers, floats as small ones. Prints the least milliseconds
// of each.
//
// usage: exported FILE.onnx [--threads N] [--seconds S] [--with NAME=SIZE …]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "bench.hpp"
#include "xtape/grad.hpp"
#include "xtape/onnx.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
Array fed(Dtype dtype, const Shape& shape) {
  Array floats(Dtype::float64, shape);
  for (std::int64_t i = 0; i < floats.count(); ++i)
    floats.as<double>()[i] = is_floating(dtype) ? 0.01 * static_cast<double>(i * 7919 % 201 - 100) : i * 7919 % 97;
  Tape tape;
  return evaluate(cast(tape.constant(floats), dtype));
}
}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: exported FILE.onnx [OPTION…]\n"), 2;
  PlayerOptions options;
  options.threads = 1;
  double seconds = 3;
  std::map<std::string, std::int64_t> sizes;
  for (int i = 2; i + 1 < count; i += 2) {
    const std::string word = words[i], value = words[i + 1];
    if (word == "--threads") options.threads = std::stoi(value);
    if (word == "--seconds") seconds = std::stod(value);
    if (word == "--with") sizes[value.substr(0, value.find('='))] = std::stoll(value.substr(value.find('=') + 1));
  }
  const double opening = bench::best_of(0, [&] { open_onnx(words[1]); });
  const OnnxModel model = open_onnx(words[1]);
  Tape tape(Mode::eval);
  Vars inputs;
  std::vector<Array> arrays;
  for (const OnnxValue& input : model.inputs()) {
    Shape shape;
    for (std::size_t i = 0; i < input.sizes.size(); ++i)
      shape.push_back(input.sizes[i] < 0 ? sizes.at(input.names[i]) : input.sizes[i]);
    arrays.push_back(fed(input.dtype, shape));
    inputs.push_back(tape.input(input.name, shape, input.dtype));
  }
  const Var output = model.record(tape, inputs)[0];
  Vars weights;
  for (const auto& [name, weight] : model.weights(tape)) weights.push_back(weight);
  const Vars gradients = grad(sum(square(output)), weights, {.materialize_grads = true});
  const auto milliseconds = [&](const Vars& outputs) {
    Player player(tape, outputs, options);
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i], arrays[i]);
    return bench::best_of(seconds, [&] { player.play(feeds); });
  };
  const double backward = milliseconds(gradients);
  options.packed = make_packed_weights();  // as ONNX Runtime does
  const double forward = milliseconds({output});
  std::printf("%.2f %.3f %.3f\n", opening, forward, backward);
}
