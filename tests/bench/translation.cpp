// The benchmark of translation: a run's model on a file of sentences, greedily and with a beam. Prints one JSON
// line for each. The time includes planning, but not loading the run.
//
// usage: translation RUN SOURCE [--lines N] [--batch N] [--threads N] [--weights DTYPE] [--precision NAME]
//                    [--as-if-threads N], which compares the predicted time of N threads with the measured one
#include <cstdio>
#include <string>

#include "predicted.hpp"
#include "xtape/xtape.hpp"

namespace {

using namespace xtape;
using bench::seconds;

struct Words {
  std::string run;
  std::string source;
  std::size_t lines = 1000;
  std::int64_t batch = 64;
  std::string threads = "2";
  std::string weights = "float32";
  std::string precision = "float32";
  int predicted = 0;
};

Run open(const Words& words, const std::string& threads) {
  Run run = Run::open(words.run, {{"threads", threads}, {"precision", words.precision}});
  run.model().store_weights_as(dtype_named(words.weights));
  return run;
}

void measure(Run& run, const std::vector<std::string>& lines, std::int64_t batch, std::int64_t beam) {
  SearchOptions options = run.recipe().search;
  options.beam_size = beam;
  options.batch_size = batch;
  const double start = seconds();
  const std::vector<Translation> made = run.translate(lines, options);
  const double time = seconds() - start;
  std::size_t tokens = 0;
  for (const Translation& each : made)
    if (!each.candidates.empty()) tokens += run.tokenizer().encode(each.candidates[0].text).size() + 1;
  std::printf(
      "{\"beam\": %lld, \"batch\": %lld, \"sentences\": %zu, \"seconds\": %.3f, "
      "\"sentences_per_s\": %.1f, \"tokens_per_s\": %.0f}\n",
      static_cast<long long>(beam), static_cast<long long>(batch), lines.size(), time,
      static_cast<double>(lines.size()) / time, static_cast<double>(tokens) / time);
  std::fflush(stdout);
}

Words parse(int count, char** arguments) {
  const char* usage =
      "usage: translation RUN SOURCE [--lines N] [--batch N] [--threads N] [--weights DTYPE] [--precision NAME]";
  if (count < 3 || count % 2 == 0) throw Error(usage);
  Words words = {arguments[1], arguments[2]};
  for (int i = 3; i < count; i += 2) {
    const std::string word = arguments[i];
    if (word == "--lines")
      words.lines = std::stoul(arguments[i + 1]);
    else if (word == "--batch")
      words.batch = std::stol(arguments[i + 1]);
    else if (word == "--threads")
      words.threads = arguments[i + 1];
    else if (word == "--weights")
      words.weights = arguments[i + 1];
    else if (word == "--precision")
      words.precision = arguments[i + 1];
    else if (word == "--as-if-threads")
      words.predicted = std::stoi(arguments[i + 1]);
    else
      throw Error(usage);
  }
  return words;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Words words = parse(count, arguments);
    std::vector<std::string> lines = read_lines(words.source);
    if (lines.size() > words.lines) lines.resize(words.lines);
    if (words.predicted > 0) {
      bench::print_predicted("translation", words.predicted, 1, [&](int threads) -> std::function<void()> {
        const auto run = std::make_shared<Run>(open(words, std::to_string(threads)));
        return [=, &words] {
          SearchOptions options = run->recipe().search;
          options.batch_size = words.batch;
          run->translate(lines, options);
        };
      });
      return 0;
    }
    Run run = open(words, words.threads);
    for (const std::int64_t beam : {1, 5}) measure(run, lines, words.batch, beam);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "translation: %s\n", error.what());
    return 1;
  }
}
