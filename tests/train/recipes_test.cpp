#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "source_root.hpp"
#include "xtape/train.hpp"

using namespace xtape;
namespace fs = std::filesystem;

namespace {
/// What the data says is this in all recipes here: sizes of vocabularies, columns, labels.
constexpr std::int64_t said = 96;

constexpr std::int64_t linear(std::int64_t in, std::int64_t out) {
  return in * out + out;
}
constexpr std::int64_t attention(std::int64_t d) {
  return 4 * linear(d, d);
}
constexpr std::int64_t norms(std::int64_t count, std::int64_t d) {
  return count * 2 * d;
}
constexpr std::int64_t forward(std::int64_t d, std::int64_t d_ff) {
  return linear(d, d_ff) + linear(d_ff, d);
}
/// With a bias on both sides of the gates, as in PyTorch.
constexpr std::int64_t gates(int count, std::int64_t in, std::int64_t units) {
  return count * (linear(in, units) + linear(units, units));
}

/// GPT-2 of four times its width inside; its output layer is the embedding.
constexpr std::int64_t gpt(std::int64_t positions, std::int64_t d, std::int64_t layers) {
  return (said + positions) * d + layers * (attention(d) + forward(d, 4 * d) + norms(2, d)) + norms(1, d);
}
/// Encoder and decoder, without embeddings.
constexpr std::int64_t transformer(std::int64_t d, std::int64_t d_ff, std::int64_t layers) {
  return layers * (3 * attention(d) + 2 * forward(d, d_ff) + norms(5, d));
}
/// Bahdanau's: two directions, a bridge to the first state, additive attention; without the layer before the classes.
constexpr std::int64_t gru(std::int64_t d, std::int64_t units) {
  return 2 * said * d + 2 * gates(3, d, units) + gates(3, d + 2 * units, units) + linear(2 * units, units) +
         units * units + linear(2 * units, units) + units;
}
/// Encoder and decoder of `layers` each, and one layer before the attention.
constexpr std::int64_t lstm(std::int64_t d, int layers) {
  return 2 * said * d + (2 * layers + 1) * gates(4, d, d) + attention(d) + linear(d, said);
}

/// GPT-2 of width 128 without biases.
constexpr std::int64_t shakespeare(std::int64_t layers) {
  return said * 128 * 2 + layers * (12 * 128 * 128 + 2 * 128) + 128;
}
/// A square convolution with a bias.
constexpr std::int64_t convolution(std::int64_t in, std::int64_t out, std::int64_t size = 3) {
  return in * size * size * out + out;
}
/// Two stages of convolutions without biases, with their norms, and a linear layer.
constexpr std::int64_t image_cnn =
    said * 9 * 16 + 9 * 16 * 32 + 2 * (16 + 32) + linear(32 * (said / 4) * (said / 4), said);

const std::map<std::string, std::int64_t> parameters = {
    {"adder", gpt(said, 128, 2)},
    {"cifar10_resnet", 269'722 - 3 * 9 * 16 + said * 9 * 16 + linear(64, said) - linear(64, 10)},
    {"classification", 2 * said + linear(said, 64) + linear(64, 64) + linear(64, said)},
    {"classify_texts", said * 64 + linear(64, 64) + linear(64, said)},
    {"tag_words", said * 64 + 2 * gates(4, 64, 64) + linear(128, said)},
    {"dates_gru", gru(64, 128) + linear(128, said)},
    {"dates_lstm", lstm(128, 1)},
    {"digits", image_cnn},
    {"digits_tasks", image_cnn + convolution(32, 16 * said, 1)},
    {"digits_clip", convolution(1, 16) + convolution(16, 32) + linear(32 * 4 * 12, 32) + (128 + 32) * 64 +
                        2 * (attention(64) + forward(64, 256) + norms(2, 64)) + norms(1, 64) + linear(64, 32) + 1},
    {"digits_ddpm", convolution(said, 32) + convolution(32, said) + linear(32, 128) + linear(128, 128) + norms(1, 32) +
                        3 * (norms(2, 32) + 2 * convolution(32, 32) + linear(128, 32))},
    {"digits_vqvae", convolution(said, 32) + convolution(32, 32) + convolution(32, 8, 1) +
                         linear(8 * (said / 2) * (said / 2), 256) + linear(256, said* said* said)},
    {"dpo", 2 * gpt(256, 128, 4)},
    {"digits_wgan", linear(said* said* said, 128) + linear(128, 128) + linear(128, 1) +  // the critic
                        linear(16, 128) + linear(128, 128) + linear(128, said* said* said)},
    {"gpt2_finetune", 124'439'808},                           // as published
    {"gpt2_lora_finetune", 124'439'808 + 12 * 8 * 16 * 768},  // rank 8 beside matrices of 4 + 2 + 5 + 5 widths
    {"masked_lm", said * 128 + 130 * 128 + 2 * 128 + norms(1, 128) +
                      4 * (attention(128) + forward(128, 512) + norms(2, 128)) + linear(128, 128) + norms(1, 128) +
                      said},
    {"span_corruption", said * 128 + 2 * (12 * 128 * 128 + 4 * 128 * 512 + 5 * 128) + 2 * 32 * 4 + 2 * 128},
    {"gpt2_padded", gpt(257, 128, 8)},
    {"chat_finetune", 2 * 32000 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 2048 + 2 * 768) + 768},
    {"chat_lora", 2 * 32000 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 2048 + 2 * 768) + 768 +
                      12 * 16 * (4 * (768 + 768) + 3 * (768 + 2048))},  // rank 16 beside all linear maps
    {"chat_packed", gpt(256, 128, 4)},
    {"llama_finetune", 2 * 32000 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 2048 + 2 * 768) + 768},
    {"multi30k_de_en", transformer(256, 512, 3) + 2 * said * 256 + linear(256, said) + 2 * 128 * 256},
    {"multi30k_gru", gru(256, 512) + linear(512 + 2 * 512 + 256, said)},
    {"multi30k_lstm", lstm(256, 2)},
    {"multi30k_subword", transformer(128, 512, 4) + 2 * said * 128 + linear(128, said)},
    {"multi30k_tiny_en_de", transformer(128, 256, 4) + said * 128},
    {"number_words", transformer(64, 128, 2) + 2 * said * 64 + linear(64, said)},
    {"regression", 2 * said + linear(said, 64) + linear(64, 64) + linear(64, said)},
    {"reversing", transformer(64, 128, 2) + 3 * said * 64},
    {"roman_numerals", gru(32, 64) + linear(64, said)},
    {"shakespeare_char", shakespeare(4)},
    {"shakespeare_distilled", shakespeare(1) + shakespeare(4)},
    {"shakespeare_restarts", shakespeare(4)},
    {"shakespeare_stages", shakespeare(4)},
    {"shakespeare_lstm", said * 256 + 2 * gates(4, 256, 256) + said},
    {"shakespeare_transformer",
     said * 192 + 4 * (attention(192) + forward(192, 768) + norms(2, 192)) + norms(1, 192) + linear(192, said)},
    {"sorting", gpt(said, 48, 3)},
    {"t5_finetune", 60'506'624},                                           // t5-small, as published
    {"vit_finetune", 86'567'656 - linear(768, 1000) + linear(768, said)},  // ViT-B/16, as published, with other labels
};

/// The recipe; one that names no text of its own is given one.
Recipe loaded(const std::string& path) {
  const std::string text = read_text(path);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  const bool on_text = has("\"kind\": \"text\"") || has("\"kind\": \"documents\"");
  std::vector<Setting> settings;
  if (on_text && !has("\"text\":")) settings.push_back({"data.text", "text.txt"});
  if (has("\"kind\": \"chats\"")) settings.push_back({"data.chats", "chats.jsonl"});
  if (has("\"kind\": \"preferences\"")) settings.push_back({"data.preferences", "preferences.jsonl"});
  if (has("\"kind\": \"saved\"")) settings.push_back({"tokenizer.path", "tokenizer.json"});
  if (has("\"start\": {")) settings.push_back({"start.from", "before"});
  if (has("\"start\": ["))
    for (const char* key : {"start.0.from", "start.1.from"}) settings.push_back({key, "before"});
  return Recipe::load(path, settings);
}
}  // namespace

TEST_CASE("every recipe in models/recipes is right, and makes a model of the size that its words say") {
  std::map<std::string, std::int64_t> found;
  for (const auto& entry : fs::directory_iterator(source_root() + "/models/recipes")) {
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    const Recipe recipe = loaded(entry.path().string());
    CHECK(recipe.name == name);
    ModelOptions options;
    options.initialise = false;
    for (const HyperSetting& each : recipe.hyper)
      options.hyper.emplace_back(each.name, each.from_data ? std::to_string(said) : each.text);
    found[name] = Model::load(recipe.definition, options).parameter_count();
  }
  CHECK(found.size() == parameters.size());
  for (const auto& each : parameters) {
    CAPTURE(each.first);
    CHECK(found[each.first] == each.second);
  }
}
