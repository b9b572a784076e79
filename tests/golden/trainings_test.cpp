// Trainings by installed recipes, made small, against the same trainings in PyTorch (scripts/trainings.py): each has
// the losses of 50 updates in float64. With XTAPE_TRAININGS=FOLDER, writes the first weights and the batches for the
// script.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "support/folders.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/train.hpp"

using namespace xtape;

namespace trainings {

namespace {
constexpr std::int64_t updates = 50;

/// A training: an installed recipe and the keys that make it small.
struct Training {
  std::string name, recipe;
  const char* settings;  ///< JSON: keys of the recipe and their values.
  /// Functions with random numbers, and those that are played instead. They take the numbers as inputs.
  std::vector<std::pair<std::string, std::string>> given = {};
};

constexpr const char* small_gpt = R"("hyper.n_embd": 12, "hyper.n_layer": 1, "hyper.n_head": 2, "batch.size": 3,
  "schedule.warmup": 5, "data.text": "lines.txt", "data.block_size": 12, "start": null)";

const std::vector<Training> all = {
    {"wgan_gp",
     "digits_wgan",
     R"("data.images": "digits.safetensors", "hyper.hidden": 6, "hyper.latent": 3, "hyper.penalty": 2.0, "batch.size": 6,
       "schedule.rate": 0.01, "updates": [
         {"loss": "critic_loss", "trains": "critic.*", "repeat": 2, "clip": 0.5},
         {"loss": "generator_loss", "trains": "generator.*", "optimizer": {"kind": "sgd", "momentum": 0.5},
          "schedule": {"kind": "linear", "rate": 0.05}}])",
     {{"critic_loss", "telling_apart"}, {"generator_loss", "recognition"}}},
    {"wgan_gp_simultaneous",
     "digits_wgan",
     R"("data.images": "digits.safetensors", "hyper.hidden": 6, "hyper.latent": 3, "batch.size": 6,
       "schedule.rate": 0.01, "simultaneous": true, "updates": [
         {"loss": "critic_loss", "trains": "critic.*"}, {"loss": "generator_loss", "trains": "generator.*"}])",
     {{"critic_loss", "telling_apart"}, {"generator_loss", "recognition"}}},
    {"dpo", "dpo", R"("hyper.n_embd": 12, "hyper.n_layer": 1, "hyper.n_head": 2, "batch.size": 4,
       "data.preferences": "preferences.jsonl", "start": null, "initialise": null, "schedule.rate": 0.01,
       "tokenizer": {"kind": "sentencepiece", "vocabulary_size": 60})"},
    {"distillation", "shakespeare_distilled", small_gpt},
    {"clip", "digits_clip", R"("hyper.height": 4, "hyper.width": 5, "hyper.filters": 2, "hyper.d_model": 8,
       "hyper.layers": 1, "hyper.heads": 2, "hyper.d_shared": 4, "batch.size": 5, "data.arrays": "pairs.safetensors",
       "data.held_out": 5, "schedule.warmup": 5)"},
    {"packed_chats", "chat_packed", R"("hyper.n_embd": 12, "hyper.n_layer": 1, "hyper.n_head": 2, "batch.size": 2,
       "data.chats": "chats.jsonl", "data.pack": 48, "hyper.n_positions": 48, "tokenizer.vocabulary_size": 60,
       "schedule.warmup": 5)"},
    {"masked_lm", "masked_lm", R"("hyper.d_model": 8, "hyper.d_ff": 12, "hyper.layers": 1, "hyper.heads": 2,
       "hyper.dropout_rate": 0.0, "batch.size": 4, "data.text": "lines.txt", "tokenizer.vocabulary_size": 60,
       "schedule.warmup": 5)"},
    {"span_corruption", "span_corruption", R"("hyper.d_model": 8, "hyper.d_ff": 12, "hyper.encoder_layers": 1,
       "hyper.heads": 2, "hyper.d_kv": 4, "batch.size": 3, "data.text": "lines.txt", "data.block_size": 24,
       "tokenizer.vocabulary_size": 60, "schedule.warmup": 5)"},
    {"ddpm",
     "digits_ddpm",
     R"("data.images": "digits.safetensors", "hyper.filters": 4, "hyper.layers": 1, "hyper.groups": 2, "hyper.steps": 20,
       "batch.size": 3, "schedule.warmup": 5)",
     {{"loss", "noised_loss"}}},
    {"vq_vae", "digits_vqvae",
     R"("data.images": "digits.safetensors", "hyper.filters": 3, "hyper.entries": 8, "hyper.d_code": 3, "hyper.decay": 0.9,
       "batch.size": 4, "epochs": null, "schedule.warmup": 5)"},
    {"tasks", "digits_tasks",
     R"("data.images": "digits.safetensors", "hyper.filters": 2, "batch.size": 5, "schedule.warmup": 5)"},
    {"stages", "shakespeare_stages",
     R"("hyper.n_embd": 12, "hyper.n_layer": 1, "hyper.n_head": 2, "batch.size": 2, "data.text": "lines.txt",
       "data.block_size": 12, "steps": null, "schedule": null, "stages": [
         {"steps": 15, "batch_size": 4, "block_size": 4, "schedule": {"kind": "linear", "rate": 0, "final_rate": 0.02}},
         {"steps": 15, "batch_size": 3, "block_size": 8, "schedule": {"kind": "constant", "rate": 0.02}},
         {"steps": 20, "schedule": {"kind": "cosine", "rate": 0.02, "final_rate": 0.001}}])"},
    {"restarts", "shakespeare_restarts",
     R"("hyper.n_embd": 12, "hyper.n_layer": 1, "hyper.n_head": 2, "batch.size": 3, "data.text": "lines.txt",
       "data.block_size": 12, "schedule": [{"kind": "linear", "rate": 0, "final_rate": 0.02, "steps": 5},
         {"kind": "cosine", "rate": 0.02, "final_rate": 0.001, "restart_every": 8, "restart_factor": 2}])"}};

std::vector<Setting> settings_of(const Training& training, const test::Folder& folder) {
  std::vector<Setting> settings = {{"steps", std::to_string(updates)}, {"evaluate_every", "null"}, {"threads", "1"}};
  const auto keys = nlohmann::json::parse("{" + std::string(training.settings) + "}");
  for (const auto& [key, value] : keys.items()) {
    const std::string file = value.is_string() ? folder / value.get<std::string>() : "";
    settings.push_back({key, std::filesystem::exists(file) ? file : value.dump()});
  }
  return settings;
}

/// Sines: numbers that both programs can write.
Array waves(const Shape& shape, double first, double step, Dtype dtype = Dtype::float64) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const double value = std::sin(first + step * static_cast<double>(i));
    if (dtype == Dtype::float64) array.as<double>()[i] = value;
    if (dtype == Dtype::float32) array.as<float>()[i] = static_cast<float>(value);
    if (dtype == Dtype::int64) array.as<std::int64_t>()[i] = std::lround(9 + 8.4 * value);
  }
  return array;
}

/// Small data of every kind, in a folder.
void write_data(const test::Folder& folder) {
  const auto words = [](int i) {
    return std::to_string(i % 7) + " birds on " + std::to_string(i * i % 5) + " trees, " + std::to_string(i) +
           " leaves";
  };
  const auto message = [](const char* role, const std::string& text) {
    return nlohmann::json{{"role", role}, {"content", text}};
  };
  std::string lines, chats, preferences;
  for (int i = 0; i < 60; ++i) {
    lines += words(i) + "\n";
    nlohmann::json chat = {message("user", words(i)), message("assistant", words(3 * i))};
    if (i % 3 == 0) chat.insert(chat.end(), {message("user", "and?"), message("assistant", words(i + 1))});
    chats += nlohmann::json{{"messages", chat}}.dump() + "\n";
    preferences +=
        nlohmann::json{{"prompt", words(i)}, {"chosen", words(3 * i)}, {"rejected", words(i + 2)}}.dump() + "\n";
  }
  std::filesystem::copy_file(source_root() + "/examples/data/digits.safetensors", folder / "digits.safetensors");
  folder.write("lines.txt", lines);
  folder.write("chats.jsonl", chats);
  folder.write("preferences.jsonl", preferences);
  Store pairs;
  pairs.add("images", waves({30, 1, 4, 5}, 0.3, 0.61, Dtype::float32));
  Array tokens = waves({30, 6}, 0.1, 0.37, Dtype::int64);
  for (std::int64_t row = 0; row < 30; ++row)  // captions of 3 to 6 tokens
    for (std::int64_t i = 3 + row % 4; i < 6; ++i) tokens.as<std::int64_t>()[row * 6 + i] = 0;
  pairs.add("tokens", tokens);
  save_arrays(folder / "pairs.safetensors", pairs);
}

/// The batches of a run in float64, with the random numbers that the functions of the training take.
class Doubles : public Batches {
 public:
  Doubles(const Batches& batches, std::vector<std::string> draws, const Hyper& hyper)
      : batches_(batches), draws_(std::move(draws)), latent_(hyper.has("latent") ? hyper.integer("latent") : 0) {}
  std::int64_t rows() const override { return batches_.rows(); }
  std::int64_t columns() const override { return batches_.columns(); }
  std::int64_t epoch_batches() const override { return batches_.epoch_batches(); }
  BatchArrays blank() const override { return widened(batches_.blank(), 0); }
  void training(std::uint64_t index, BatchArrays& batch) const override {
    BatchArrays narrow = batches_.blank();
    batches_.training(index, narrow);
    batch = widened(narrow, static_cast<double>(index));
  }
  std::int64_t validation_batches() const override { return batches_.validation_batches(); }
  void validation(std::int64_t, BatchArrays& batch) const override { batch = blank(); }
  void validation_sample(std::uint64_t, BatchArrays& batch) const override { batch = blank(); }

 private:
  BatchArrays widened(const BatchArrays& narrow, double k) const {
    BatchArrays batch;
    for (const auto& [name, array] : narrow) {
      Array wide = array.clone();
      if (array.dtype() == Dtype::float32) {
        wide = Array(Dtype::float64, array.shape());
        for (std::int64_t i = 0; i < array.count(); ++i)
          wide.as<double>()[i] = static_cast<double>(array.as<float>()[i]);
      }
      batch.set(name, wide);
    }
    if (draws_.empty()) return batch;
    const Shape images = batch.at("images").shape();
    batch.set("noise", waves(latent_ > 0 ? Shape{images[0], latent_} : images, 0.9 * k, 0.71));
    batch.set("step", waves({images[0]}, 1.3 * k, 0.67, Dtype::int64));
    Array share = waves({images[0], 1}, k, 0.53);
    for (std::int64_t i = 0; i < share.count(); ++i) share.as<double>()[i] = 0.5 + 0.5 * share.as<double>()[i];
    batch.set("share", share);
    return batch;
  }

  const Batches& batches_;
  std::vector<std::string> draws_;
  std::int64_t latent_;
};

/// Plays functions that are given their random numbers in place of those that draw them.
TrainerOptions given_draws(TrainerOptions options, const Training& training) {
  for (const auto& [drawing, given] : training.given) {
    if (options.updates.empty()) options.updates = {{.loss = drawing}};
    for (LossUpdate& update : options.updates)
      if (update.loss == drawing) update.loss = given;
  }
  return options;
}

Model in_double(Run& run) {
  Model model = Model::parse(run.model().definition_text(), {.seed = 3, .dtype = Dtype::float64});
  for (const Store::Entry& weight : model.weights()) {  // a DPO begins with a reference that equals the model
    const std::string other = "other." + weight.name;
    if (run.recipe().name == "dpo" && model.weights().find(other) != nullptr)
      Array(model.weights().at(other)).assign(weight.value);
  }
  return model;
}

/// Writes the first weights and all batches of a training.
void write(const Model& model, const Batches& batches, const std::string& path) {
  Store arrays;
  for (const Store::Entry& weight : model.weights()) arrays.add("weights." + weight.name, weight.value.clone());
  for (std::int64_t k = 0; k < updates; ++k) {
    BatchArrays batch;
    batches.training(static_cast<std::uint64_t>(k), batch);
    for (const auto& [name, array] : batch) arrays.add(std::to_string(k) + "." + name, array.clone());
  }
  save_arrays(path, arrays);
}
/// Chat templates are those of the source tree.
struct ModelsOfTree {
  ModelsOfTree() { setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1); }
  ~ModelsOfTree() { unsetenv("XTAPE_MODELS"); }
};
}  // namespace

TEST_CASE("fifty updates by each recipe have the losses of PyTorch") {
  const char* const writes = std::getenv("XTAPE_TRAININGS");
  const std::string fixture = source_root() + "/tests/golden/data/trainings.json";
  const ModelsOfTree models;
  const test::Folder folder;
  write_data(folder);
  for (const Training& training : all) {
    CAPTURE(training.name);
    const std::string recipe = source_root() + "/models/recipes/" + training.recipe + ".json";
    Run run = Run::create(Recipe::load(recipe, settings_of(training, folder)), folder / training.name);
    std::vector<std::string> draws;
    for (const auto& each : training.given) draws.push_back(each.second);
    Model model = in_double(run);
    const Doubles batches(run.batches(), draws, model.hyper());
    if (writes != nullptr) {
      const std::string path = std::string(writes) + "/" + training.name + ".safetensors";
      write(model, batches, path);
      CHECK(std::filesystem::exists(path));
      continue;
    }
    const std::vector<double> expected =
        nlohmann::json::parse(std::ifstream(fixture)).at(training.name).get<std::vector<double>>();
    REQUIRE(expected.size() == updates);
    Trainer trainer(model, batches, given_draws(run.recipe().trainer, training));
    for (const double loss : expected) {
      const StepReport report = trainer.update();
      CAPTURE(report.step);
      CHECK(std::abs(report.loss - loss) <= 1e-9 * (1 + std::abs(loss)));
    }
  }
}

}  // namespace trainings
