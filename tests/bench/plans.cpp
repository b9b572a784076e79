// The plans of the workloads, and the digests of a play: what a change that must not change results is compared by
// (scripts/replay.py).
//
// usage: plans [--digests] [--threads N]
//   --digests  prints no plans, but the digests of all values, which no number of threads changes
//   --threads  the number of threads (2)
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "training_step.hpp"
#include "xtape/decode.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
/// Prints the plan of a training step and the digests of its first play.
void print_step(const bench::TrainingStep& step, const bench::Workload& w, const std::string& name,
                const PlayerOptions& given, bool plans) {
  PlayerOptions options = given;
  options.digests = true;
  Player player(step.tape, step.outputs, options);
  std::cout << w.name << ", " << name << "\n";
  if (plans) std::cout << player.plan();
  player.play(step.feeds(), 1);
  std::vector<std::string> lines;
  for (const Digest& each : player.digests()) {
    std::ostringstream line;
    line << each.node << " " << each.output << " " << each.op << " " << each.type << " " << std::hex << each.hash << " "
         << each.site;
    lines.push_back(line.str());
  }
  if (!plans) {  // the order of steps, and what a limit of memory computes again, belong to the plan
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  }
  for (const std::string& line : lines) std::cout << line << "\n";
}

void print_tokens(const bench::Workload& w) {
  Model model = bench::make_model(w);
  PredictorOptions options;
  options.limit = w.sizes.at("t");
  options.player.emplace();
  Predictor predictor(model, "logits", options);
  GenerateOptions generating;
  generating.context = w.sizes.at("t");
  generating.tokens = 40;
  std::cout << w.name << ":";
  generating.each = [](std::int32_t token) {
    std::cout << ' ' << token;
    return false;
  };
  generate(predictor, {1, 2, 3, 4, 5, 6, 7}, generating);
  std::cout << "\n";
}
}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const auto word = [&](const char* name) { return std::find(words.begin(), words.end(), name); };
  const bool plans = word("--digests") == words.end();
  PlayerOptions usual;
  usual.threads = word("--threads") == words.end() ? 2 : std::stoi(*std::next(word("--threads")));
  for (const bench::Workload& w : bench::all_workloads()) {
    if (w.decodes) {
      print_tokens(w);
      continue;
    }
    const bench::TrainingStep step(w);
    PlayerOptions each_call = usual, halves = usual, least = usual;
    each_call.passes = Passes::unfused();
    halves.precision = Precision::bf16x3;
    print_step(step, w, "as it is", usual, plans);
    print_step(step, w, "without rules", each_call, plans);
    print_step(step, w, "bf16x3", halves, plans);
    if (w.name != "gpt-char") continue;  // the search for a budget takes long for large models
    least.memory = memory_curve(step.tape, step.outputs, least).back().bytes;
    print_step(step, w, "in the least memory", least, plans);
  }
}
