// GPT-2 in folders as transformers saves them, against what transformers computes on them (hugging_face.py).
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/decode.hpp"
#include "xtape/predict.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string folders = source_root() + "/tests/golden/data/hugging_face/";

const Store& expected() {
  static const Store arrays = test::golden("hugging_face/expected.safetensors");
  return arrays;
}

Model opened(const std::string& folder, Dtype dtype = Dtype::float64, std::optional<Dtype> weights = std::nullopt) {
  ModelOptions options;
  options.dtype = dtype;
  options.weights = weights;
  options.hyper = {{"dropout_rate", "0"}};
  return open_hugging_face(folder, options, source_root() + "/models/gpt2.json");
}

std::vector<double> logits(Model& model, const Array& tokens) {
  const Store results = model.play("logits", {{"tokens", tokens}});
  return numbers(results[0].value);
}

/// The tokens of row `b` from place `begin` up to place `end`.
Tokens row(std::int64_t b, std::int64_t begin = 0, std::int64_t end = 12) {
  const std::int64_t* tokens = expected().at("tokens").as<std::int64_t>() + b * 12;
  return {tokens + begin, tokens + end};
}

void check_logits(Model&& model, const Array& tokens, const std::string& name, double tolerance = 1e-12) {
  CAPTURE(name);
  CHECK(test::worst(logits(model, tokens), numbers(expected().at(name))) < tolerance);
}

/// The folder `tiny` with other words in its config.
void put(const Folder& folder, const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config[key] = value;
  folder.write("config.json", config.dump());
}

/// The weights of `tiny` as the first published files have them: without the prefix, and with what is no weight.
Store published(bool prefix, bool buffers) {
  Store store;
  const Store tiny = load_arrays(folders + "tiny/model.safetensors");
  for (const Store::Entry& entry : tiny)
    store.add(prefix ? entry.name : entry.name.substr(std::string("transformer.").size()), Array(entry.value));
  for (const std::string layer : {"h.0.", "h.1."}) {
    if (!buffers) continue;
    const std::string start = (prefix ? "transformer." : "") + layer + "attn.";
    store.add(start + "bias", Array(Dtype::float32, {1, 1, 80, 80}));
    store.add(start + "masked_bias", Array(Dtype::float32, {}));
  }
  return store;
}
}  // namespace

TEST_CASE("a folder of transformers: logits, in either dtype") {
  check_logits(opened(folders + "tiny"), expected().at("tokens"), "logits");
  check_logits(opened(folders + "tiny", Dtype::float32), expected().at("tokens"), "logits", 2e-6);
}

TEST_CASE("a folder of transformers: float16, bfloat16, several files, an output table of its own") {
  for (const std::string name : {"half", "brain", "untied"})
    check_logits(opened(folders + name), token_array({row(0)}), name + ".logits");
  for (const auto& [name, dtype] : {std::pair("half", Dtype::float16), std::pair("brain", Dtype::bfloat16)}) {
    CHECK(stored_weights(folders + name) == dtype);
    Model kept = opened(folders + name, Dtype::float32, dtype);
    CHECK(kept.weights().at("wte.weight").dtype() == dtype);
    check_logits(std::move(kept), token_array({row(0)}), std::string(name) + ".logits", 2e-6);
  }
  check_logits(opened(folders + "shards"), expected().at("tokens"), "logits");
  CHECK(!opened(folders + "untied").hyper().flag("tied"));
  CHECK(opened(folders + "untied").hyper().integer("n_inner") == 24);
}

TEST_CASE("a folder of transformers: names with and without prefix, and what is no weight") {
  for (const bool prefix : {false, true})
    for (const bool buffers : {false, true}) {
      const Folder folder(folders + "tiny");
      save_arrays(folder / "model.safetensors", published(prefix, buffers));
      check_logits(opened(folder.path()), expected().at("tokens"), "logits");
    }
}

TEST_CASE("a folder of transformers: an output table that is the same is tied, and one that differs is not") {
  const Folder folder(folders + "tiny");
  Store store = published(true, false);
  Array table = Array(ArrayView(store.at("transformer.wte.weight")));
  store.add("lm_head.weight", table);
  save_arrays(folder / "model.safetensors", store);
  CHECK(opened(folder.path()).weights().find("lm_head.weight") == nullptr);
  check_logits(opened(folder.path()), expected().at("tokens"), "logits");
  // Untied by the config, equal tables stay two.
  put(folder, "tie_word_embeddings", false);
  CHECK(opened(folder.path()).weights().find("lm_head.weight") != nullptr);
  check_logits(opened(folder.path()), expected().at("tokens"), "logits");
  put(folder, "tie_word_embeddings", true);
  table.as<float>()[3] += 1;
  save_arrays(folder / "model.safetensors", store);
  Model untied = opened(folder.path());
  CHECK(!untied.hyper().flag("tied"));
  CHECK(test::worst(logits(untied, expected().at("tokens")), numbers(expected().at("logits"))) > 1e-3);
}

TEST_CASE("a folder of transformers: options of the config") {
  for (const auto& [name, key, value] : {std::tuple("gelu", "activation_function", nlohmann::json("gelu")),
                                         {"relu", "activation_function", "relu"},
                                         {"unscaled", "scale_attn_weights", false},
                                         {"by_layer", "scale_attn_by_inverse_layer_idx", true},
                                         {"epsilon", "layer_norm_epsilon", 0.1}}) {
    const Folder folder(folders + "tiny");
    put(folder, key, value);
    check_logits(opened(folder.path()), token_array({row(0)}), std::string("logits.") + name);
  }
  const Folder folder(folders + "tiny");
  put(folder, "reorder_and_upcast_attn", true);
  check_logits(opened(folder.path(), Dtype::float32), token_array({row(0)}), "logits.upcast", 2e-6);
}

TEST_CASE("a folder of transformers: loss and every gradient") {
  for (const PlayerOptions& options : {PlayerOptions{}, test::by_reference()})
    test::check_gradients(opened(folders + "tiny"), expected(), {{"b", 3}, {"t", 12}}, options);
}

TEST_CASE("a folder of transformers: gradients where the output table is untied") {
  const Model model = opened(folders + "untied");
  const test::Recorded recorded(model, expected(), {{"b", 3}, {"t", 12}});
  Player player(recorded.tape, recorded.outputs());
  player.play(recorded.feeds);
  CHECK(std::fabs(player.scalar(recorded.loss) - numbers(expected().at("untied.loss"))[0]) < 1e-12);
  int compared = 0;
  for (std::size_t i = 0; i < recorded.weights.size(); ++i)
    if (const Array* by = expected().find("untied.grad." + recorded.weights[i].name)) {
      CAPTURE(recorded.weights[i].name);
      CHECK(test::worst(numbers(player.view(recorded.gradients[i])), numbers(*by)) < 1e-12);
      ++compared;
    }
  CHECK(compared == 3);
}

TEST_CASE("a folder of transformers: ten losses of AdamW") {
  const Model model = opened(folders + "tiny");
  const test::Recorded recorded(model, expected(), {{"b", 3}, {"t", 12}});
  Player player(recorded.tape, recorded.outputs());
  OptimizerOptions options;
  options.beta2 = 0.95;
  options.weight_decay = 0.1;
  Optimizer optimizer(model.weights(), options);
  const std::vector<double> losses = numbers(expected().at("losses"));
  REQUIRE(losses.size() == 10);
  for (const double each : losses) {
    player.play(recorded.feeds);
    CHECK(std::fabs(player.scalar(recorded.loss) - each) < 1e-9);
    std::vector<ArrayView> views;
    for (const Var& gradient : recorded.gradients) views.push_back(player.view(gradient));
    optimizer.update(views, 1e-2, 1, 1.0);
  }
}

TEST_CASE("a folder of transformers: 64 tokens of greedy continuation, with caches and without") {
  REQUIRE(expected().at("continuation").shape() == Shape{64});
  const std::int64_t* first = expected().at("continuation").as<std::int64_t>();
  const Tokens continuation(first, first + 64);
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    Model model = opened(folders + "tiny", dtype);
    GenerateOptions options;
    options.tokens = 64;
    options.context = 80;
    options.sampling.temperature = 0;
    CHECK(generate(model, row(0, 0, 8), options) == continuation);
    CHECK(whole::generate(model, row(0, 0, 8), options) == continuation);
  }
}

TEST_CASE("a folder of transformers: step by step is the same as at once") {
  Model model = opened(folders + "tiny");
  Predictor predictor(model);
  predictor.begin(3);
  std::vector<double> found(numbers(expected().at("logits")).size());
  for (std::int64_t t = 0; t < 12; ++t) {
    const std::vector<double> some =
        numbers(predictor.step(token_array({row(0, t, t + 1), row(1, t, t + 1), row(2, t, t + 1)})));
    for (std::int64_t b = 0; b < 3; ++b) std::copy_n(some.begin() + b * 97, 97, found.begin() + (b * 12 + t) * 97);
  }
  CHECK(test::worst(found, numbers(expected().at("logits"))) < 1e-12);
}
