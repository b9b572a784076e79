// The main benchmark: whole training steps (forward, backward, gradients clipped to norm 1, AdamW) of models on random
// tokens, and generation of one token at a time. Prints one JSON line per workload, with the same keys as the benchmark
// of other frameworks (see scripts/compare.sh).
//
// usage: workloads [--only NAME[,NAME]] [--steps N] [--threads N] [--profile]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include "bench.hpp"
#include "decode.hpp"
#include "xtape/optim.hpp"
#include "xtape/xtape.hpp"

namespace {

using namespace xtape;
using bench::seconds;

struct Workload {
  std::string name;
  std::string definition;
  std::vector<std::pair<std::string, std::string>> hyper;
  NamedSizes sizes;
  std::int64_t vocabulary;
  std::vector<std::string> tables;  ///< Lookup tables, which do not count in 6 x parameters x tokens.
  bool decodes = false;             ///< Generates in a context of its size t instead of training.
};

Workload gpt(const std::string& name, std::int64_t vocabulary, const std::string& layers, const std::string& heads,
             const std::string& width, std::int64_t context, std::int64_t batch, const std::string& bias,
             const std::string& dropout) {
  return {name,
          "gpt2",
          {{"vocab_size", std::to_string(vocabulary)},
           {"n_positions", std::to_string(context)},
           {"n_embd", width},
           {"n_layer", layers},
           {"n_head", heads},
           {"dropout_rate", dropout},
           {"bias", bias},
           {"norm_bias", "true"}},
          {{"b", batch}, {"t", context}},
          vocabulary,
          {}};
}

Workload decoding(Workload w) {
  w.decodes = true;
  return w;
}

std::vector<Workload> all_workloads() {
  return {
      // Learned positions, tied output, tanh GELU, norms with bias.
      gpt("gpt-char", 65, "4", "4", "128", 64, 12, "false", "0.0"),
      gpt("gpt-baby", 65, "6", "6", "384", 256, 8, "false", "0.2"),
      gpt("gpt2-124m", 50257, "12", "12", "768", 64, 4, "true", "0.0"),
      // PyTorch's nn.Transformer: post-norm, with a norm after each stack; separate embeddings and output.
      {"transformer",
       "transformer",
       {{"source_vocab_size", "8192"},
        {"d_model", "128"},
        {"d_ff", "512"},
        {"heads", "8"},
        {"encoder_layers", "4"},
        {"decoder_layers", "4"},
        {"final_norm", "true"},
        {"shared_embeddings", "false"},
        {"tied_output", "false"},
        {"output_bias", "true"},
        {"label_smoothing", "0"},
        {"attention_dropout_rate", "0.1"},
        {"activation_dropout_rate", "0.1"}},
       {{"b", 64}, {"s", 32}, {"t", 32}},
       8192,
       {"source_embedding.weight", "target_embedding.weight"}},
      {"gru-attention",
       "gru_attention",
       {{"source_vocab_size", "8192"}, {"embedding_dim", "256"}, {"units", "256"}},
       {{"b", 64}, {"s", 24}, {"t", 24}},
       8192,
       {"embedding.weight", "decoder.embedding.weight"}},
      {"lstm-attention",
       "lstm_attention",
       {{"source_vocab_size", "8192"}, {"width", "256"}},
       {{"b", 64}, {"s", 24}, {"t", 24}},
       8192,
       {"source_embedding.weight", "target_embedding.weight"}},
      decoding(gpt("gpt2-124m-decode", 50257, "12", "12", "768", 256, 1, "true", "0.0")),
  };
}

struct Words {
  std::vector<std::string> only;
  int steps = 9;
  int threads = 2;
  bool profile = false;
};

Model make_model(const Workload& w) {
  ModelOptions options;
  options.hyper = w.hyper;
  return Model::load(XTAPE_SOURCE_ROOT "/models/" + w.definition + ".json", options);
}

Array random_tokens(const Shape& shape, std::int64_t vocabulary, std::mt19937_64& generator) {
  std::uniform_int_distribution<std::int64_t> token(1, vocabulary - 1);
  Array tokens(Dtype::int64, shape);
  std::generate_n(tokens.as<std::int64_t>(), tokens.count(), [&] { return token(generator); });
  return tokens;
}

/// Prints the time of a play by op to stderr, as the mean of `plays` plays.
void print_profile(const Player& player, int plays) {
  std::vector<double> times = player.seconds();
  for (double& time : times) time /= plays;
  std::map<std::string, std::pair<double, int>> by_op;
  for (std::size_t i = 0; i < times.size(); ++i) {
    auto& [total, count] = by_op[player.plan().steps[i].op];
    total += times[i];
    ++count;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> rows(by_op.begin(), by_op.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  const double total = std::accumulate(times.begin(), times.end(), 0.0);
  std::fprintf(stderr, "%9.3f ms in %zu steps\n", total * 1e3, times.size());
  for (const auto& [op, row] : rows) {
    std::fprintf(stderr, "%9.3f ms %5.1f %% %5d x %s\n", row.first * 1e3, 100 * row.first / total, row.second,
                 op.c_str());
  }
}

long peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::lround(static_cast<double>(usage.ru_maxrss) / 1024);
}

/// Generates one token at a time for one row, and in the same run measures the time to read the weights once.
void run_decoding(const Workload& w, const Words& words) {
  Model model = make_model(w);
  const bench::DecodeTimes times =
      bench::time_decoding(model, w.vocabulary, w.sizes.at("t"), std::int64_t{8} * words.steps, words.threads);
  std::printf(
      "{\"workload\": \"%s\", \"peer\": \"xtape\", \"ms\": %.3f, \"tokens_per_s\": %.1f, \"gflops\": 0.0, "
      "\"peak_mb\": %ld, \"loss\": 0.0, \"first_token_ms\": %.1f, \"read_weights_ms\": %.3f, \"ratio\": %.3f}\n",
      w.name.c_str(), times.token * 1e3, 1 / times.token, peak_mebibytes(), times.first_token * 1e3, times.read * 1e3,
      times.token / times.read);
  std::fflush(stdout);
}

void run(const Workload& w, const Words& words) {
  if (w.decodes) {
    run_decoding(w, words);
    return;
  }
  Model model = make_model(w);
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", w.sizes);
  const NamedVars results = model.record(tape, "loss", inputs);
  const Var loss = results[0].value / cast(results[1].value, Dtype::float32);
  Vars weights;
  for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
  const Vars gradients = grad(loss, weights);
  Vars outputs = gradients;
  outputs.push_back(loss);
  PlayerOptions options;
  options.threads = words.threads;
  options.profile = words.profile;
  Player player(tape, outputs, options);

  OptimizerOptions adamw;
  adamw.beta2 = 0.98;
  adamw.weight_decay = 0.01;
  adamw.decay_all = true;
  Optimizer optimizer(model.weights(), adamw, words.threads);
  std::size_t planned = player.plan().peak_bytes();
  for (const Store::Entry& entry : optimizer.state()) planned += entry.value.bytes();

  std::mt19937_64 generator(0);
  std::vector<Array> fed;
  std::vector<Feed> feeds;
  for (const auto& input : inputs) fed.push_back(random_tokens(input.value.shape(), w.vocabulary, generator));
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i].value, fed[i]);

  std::vector<double> times;
  std::vector<ArrayView> views;
  double last_loss = 0;
  for (int step = 0; step < words.steps + 2; ++step) {
    const double start = seconds();
    player.play(feeds, static_cast<std::uint64_t>(step));
    views.clear();
    for (const Var& gradient : gradients) views.push_back(player.view(gradient));
    optimizer.update(views, 1e-3, 1, 1.0);
    last_loss = player.scalar(loss);
    if (step >= 2) times.push_back(seconds() - start);
  }
  std::sort(times.begin(), times.end());
  const double time = times[times.size() / 2];
  const double count = static_cast<double>(inputs.at("targets").size(0) * inputs.at("targets").size(1));
  std::int64_t parameters = model.parameter_count();
  for (const std::string& table : w.tables) parameters -= model.weights().at(table).count();

  std::printf(
      "{\"workload\": \"%s\", \"peer\": \"xtape\", \"ms\": %.3f, \"tokens_per_s\": %.1f, \"gflops\": %.1f, "
      "\"peak_mb\": %ld, "
      "\"planned_peak_mb\": %.0f, \"loss\": %.4f}\n",
      w.name.c_str(), time * 1e3, count / time, 6 * static_cast<double>(parameters) * count / time / 1e9,
      peak_mebibytes(), static_cast<double>(planned) / (1 << 20), last_loss);
  std::fflush(stdout);
  if (words.profile) print_profile(player, words.steps + 2);
}

Words parse(int count, char** arguments) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= count) throw Error(word + " needs a value");
      return arguments[++i];
    };
    if (word == "--only") {
      std::istringstream names(value());
      for (std::string name; std::getline(names, name, ',');) words.only.push_back(name);
    } else if (word == "--steps") {
      words.steps = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--threads") {
      words.threads = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--profile") {
      words.profile = true;
    } else {
      throw Error("usage: workloads [--only NAME[,NAME]] [--steps N] [--threads N] [--profile]");
    }
  }
  if (words.only.empty()) {
    for (const Workload& w : all_workloads()) words.only.push_back(w.name);
  }
  return words;
}

Workload workload_named(const std::string& name) {
  for (const Workload& w : all_workloads()) {
    if (name == w.name) return w;
  }
  throw Error("there is no workload '" + name + "'");
}

/// Runs a workload in a child process, so that the peak memory is that of the workload.
void run_apart(const Workload& w, const Words& words) {
  const pid_t child = fork();
  if (child < 0) throw Error("cannot start a process");
  if (child == 0) {
    try {
      run(w, words);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "workloads: %s: %s\n", w.name.c_str(), error.what());
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw Error(w.name + " failed");
}

}  // namespace

int main(int count, char** arguments) {
  bench::leave_blas_its_choice(arguments);
  try {
    const Words words = parse(count, arguments);
    for (const std::string& name : words.only) run_apart(workload_named(name), words);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "workloads: %s\n", error.what());
    return 1;
  }
}
