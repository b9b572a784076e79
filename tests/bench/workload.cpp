#include "workload.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace bench {

using namespace xtape;

namespace {
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

/// Bytes, by a Mamba-2 with chunks of a size.
Workload mamba2(const std::string& chunk_size) {
  return {"mamba2-" + chunk_size,
          "mamba2",
          {{"vocab_size", "256"}, {"d_model", "256"}, {"layers", "4"}, {"state", "64"}, {"chunk_size", chunk_size}},
          {{"b", 4}, {"t", 512}},
          256,
          {}};
}

Workload decoding(Workload w) {
  w.decodes = true;
  return w;
}

}  // namespace

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

long peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::lround(static_cast<double>(usage.ru_maxrss) / 1024);
}

Workload workload_named(const std::string& name) {
  std::vector<Workload> workloads = all_workloads();
  for (const char* chunk_size : {"64", "256"}) workloads.push_back(mamba2(chunk_size));
  for (const Workload& w : workloads) {
    if (name == w.name) return w;
  }
  throw Error("there is no workload '" + name + "'");
}

OptimizerOptions adamw() {
  OptimizerOptions adamw;
  adamw.beta2 = 0.98;
  adamw.weight_decay = 0.01;
  adamw.decay_all = true;
  return adamw;
}

}  // namespace bench
