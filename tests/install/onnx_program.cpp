// Plays a model from an ONNX file with the libraries xtape-onnx and xtape-core alone.
#include <cstdio>
#include <xtape/core.hpp>
#include <xtape/onnx.hpp>

using namespace xtape;

int main(int, char** words) {
  const OnnxModel model = open_onnx(words[1]);
  Tape tape;
  const Var x = tape.input("x", {1, 2});
  const Vars y = model.record(tape, {x});
  Array ones(Dtype::float32, {1, 2});
  ones.as<float>()[0] = ones.as<float>()[1] = 1;
  Player player(tape, y);
  player.play({{x, ones}});
  std::printf("%g\n", player.scalar(y[0]));
  return player.scalar(y[0]) == 10 ? 0 : 1;
}
