// Classifies images with a Vision Transformer of a Hugging Face folder, which vit.py makes. Prints the least
// milliseconds of a play and the first logit.
//
// usage: vit FOLDER BATCH THREADS SECONDS
#include <cstdio>
#include <cstdlib>

#include "bench.hpp"
#include "xtape/hugging_face.hpp"

using namespace xtape;

int main(int count, char** words) {
  if (count != 5) {
    std::fputs("usage: vit FOLDER BATCH THREADS SECONDS\n", stderr);
    return 2;
  }
  Model model = open_hugging_face(words[1]);
  const std::int64_t batch = std::atoll(words[2]), height = model.hyper().integer("height");
  Tape tape(Mode::eval);
  const NamedVars inputs = model.inputs(tape, "logits", {{"b", batch}});
  PlayerOptions options;
  options.threads = std::atoi(words[3]);
  const Var logits = model.record(tape, "logits", inputs)[0].value;
  Player player(tape, {logits}, options);
  const Array images = bench::waves({batch, 3, height, height}, 0.37);
  const double best = bench::best_of(std::atof(words[4]), [&] { player.play({{inputs.at("images"), images}}); });
  std::printf("%g %.6f\n", best, player.view(logits)(0, 0));
}
