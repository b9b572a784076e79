// A Qwen3 in a folder as transformers saves it, against what transformers computes on it (qwen3.py).
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/decode.hpp"
#include "xtape/hugging_face.hpp"

using namespace xtape;
using test::numbers;

namespace {
const std::string qwen3 = source_root() + "/tests/golden/data/qwen3";
const std::string definition = source_root() + "/models/qwen3.json";

Array expected(const std::string& name) {
  static const Store arrays = test::golden("qwen3_expected.safetensors");
  return Array(arrays.at(name));
}

Model opened_folder(const std::string& folder = qwen3) {
  ModelOptions options;
  options.dtype = Dtype::float64;
  return open_hugging_face(folder, options, definition);
}

/// The largest difference between the logits at the last two of eleven places and those expected.
double difference(Model model) {
  const Store results = model.play("logits", {{"tokens", expected("tokens")}});
  const std::vector<double> all = numbers(results[0].value);  // [2, 11, words]
  const std::int64_t words = results[0].value.shape()[2];
  std::vector<double> last;
  for (const std::int64_t row : {0, 1})
    last.insert(last.end(), all.begin() + (row * 11 + 9) * words, all.begin() + (row + 1) * 11 * words);
  return test::worst(last, numbers(expected("logits")));
}
}  // namespace

TEST_CASE("Qwen3 in a folder: logits, loss and gradients") {
  CHECK(difference(opened_folder()) < 1e-12);
  CHECK(hugging_face_warnings(qwen3, definition).empty());
  Store batch;
  for (const char* name : {"tokens", "targets"}) batch.add(name, expected(name));
  const test::Recorded recorded(opened_folder(), batch, {{"b", 2}, {"t", 11}});
  Player player(recorded.tape, recorded.outputs());
  player.play(recorded.feeds);
  CHECK(std::fabs(player.scalar(recorded.loss) - numbers(expected("loss"))[0]) < 1e-12);
  for (const char* name : {"layers.0.self_attn.q_proj.weight", "layers.0.self_attn.q_norm.weight",
                           "layers.1.self_attn.k_norm.weight", "layers.1.mlp.gate_proj.weight", "norm.weight"}) {
    CAPTURE(name);
    std::size_t i = 0;
    while (recorded.weights[i].name != name) ++i;
    CHECK(test::worst(numbers(player.view(recorded.gradients[i])), numbers(expected(std::string("grad.") + name))) <
          1e-12);
  }
}

TEST_CASE("Qwen3 in a folder: 20 tokens of greedy continuation, with caches and without") {
  const std::int64_t* first = expected("tokens").as<std::int64_t>();
  const std::int64_t* next = expected("continuation").as<std::int64_t>();
  GenerateOptions options;
  options.tokens = 20;
  options.context = 64;
  options.sampling.temperature = 0;
  Model model = opened_folder();
  CHECK(generate(model, Tokens(first, first + 8), options) == Tokens(next, next + 20));
  CHECK(whole::generate(model, Tokens(first, first + 8), options) == Tokens(next, next + 20));
}

TEST_CASE("Qwen3 in a folder: written again and read; other settings are refused") {
  const test::Folder to;
  save_hugging_face(opened_folder(), to.path(), qwen3);
  CHECK(difference(opened_folder(to.path())) < 1e-12);
  const auto config = nlohmann::json::parse(std::ifstream(to / "config.json"));
  CHECK(config["head_dim"] == 6);
  CHECK(!config.contains("mlp_bias"));
  ModelOptions biased;
  biased.hyper = {{"mlp_bias", "true"}};
  const test::Folder other;
  CHECK_THROWS_WITH_AS(save_hugging_face(open_hugging_face(qwen3, biased, definition, {"*"}), other.path()),
                       doctest::Contains("'mlp_bias' = true, but a Qwen3ForCausalLM supports only false"),
                       DefinitionError);
}
