// Llamas in folders as transformers saves them, against what transformers computes on them (llama.py).
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/decode.hpp"
#include "xtape/hugging_face.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string llama_folders = source_root() + "/tests/golden/data/llama/";

/// What transformers gives for one of the folders.
struct Llama {
  std::string name;
  Array expected(const std::string& what) const {
    static const Store arrays = test::golden("llama/expected.safetensors");
    return Array(arrays.at(name + "." + what));
  }
  Model open(Dtype dtype = Dtype::float64, const std::string& folder = "") const {
    ModelOptions options;
    options.dtype = dtype;
    return open_hugging_face(folder.empty() ? llama_folders + name : folder, options,
                             source_root() + "/models/llama.json");
  }
  /// The largest difference between the model's logits at the last two places and those expected.
  double difference(Model model) const {
    const Store results = model.play("logits", {{"tokens", expected("tokens")}});
    const std::vector<double> all = numbers(results[0].value);
    const std::int64_t places = results[0].value.shape()[1], classes = results[0].value.shape()[2];
    std::vector<double> last;
    for (std::int64_t row = 0; row < results[0].value.shape()[0]; ++row)
      last.insert(last.end(), all.begin() + ((row + 1) * places - 2) * classes,
                  all.begin() + (row + 1) * places * classes);
    return test::worst(last, numbers(expected("logits")));
  }
  Tokens row(std::int64_t count) const {
    const std::int64_t* tokens = expected("tokens").as<std::int64_t>();
    return {tokens, tokens + count};
  }
};

const std::vector<Llama> both{{"nested"}, {"flat"}};

nlohmann::json config_in(const std::string& folder) {
  return nlohmann::json::parse(std::ifstream(folder + "/config.json"));
}
}  // namespace

TEST_CASE("Llama in a folder: logits, in either dtype, whichever way its config is spelled") {
  for (const Llama& llama : both) {
    CAPTURE(llama.name);
    CHECK(llama.difference(llama.open()) < 1e-12);
    CHECK(llama.difference(llama.open(Dtype::float32)) < 5e-6);
    CHECK(hugging_face_warnings(llama_folders + llama.name, source_root() + "/models/llama.json").empty());
  }
  CHECK(both[0].open().hyper().integer("head_dim") == 6);
  CHECK(both[0].open().hyper().number("rope_theta") == 500);
  CHECK(both[1].open().hyper().number("rope_theta") == 300);
  CHECK(both[1].open().hyper().text("rope_scaling") == "llama3");
}

TEST_CASE("Llama in a folder: loss and gradients, with rules and without") {
  for (const Llama& llama : both)
    for (const PlayerOptions& options : {PlayerOptions{}, test::by_reference()}) {
      CAPTURE(llama.name);
      Store batch;
      for (const char* name : {"tokens", "targets"}) batch.add(name, llama.expected(name));
      const test::Recorded recorded(llama.open(), batch, {{"b", 2}, {"t", 11}});
      Player player(recorded.tape, recorded.outputs(), options);
      player.play(recorded.feeds);
      CHECK(std::fabs(player.scalar(recorded.loss) - numbers(llama.expected("loss"))[0]) < 1e-12);
      for (const char* name :
           {"layers.0.self_attn.q_proj.weight", "layers.0.self_attn.k_proj.weight", "layers.1.self_attn.v_proj.weight",
            "layers.1.mlp.gate_proj.weight", "norm.weight", "layers.0.input_layernorm.weight"}) {
        CAPTURE(name);
        std::size_t i = 0;
        while (recorded.weights[i].name != name) ++i;
        CHECK(test::worst(numbers(player.view(recorded.gradients[i])),
                          numbers(llama.expected(std::string("grad.") + name))) < 1e-12);
      }
    }
}

TEST_CASE("Llama in a folder: attention of grouped queries is played as one op") {
  const Llama& llama = both[0];
  Model model = llama.open(Dtype::float32);
  const auto player = model.player("logits", Mode::eval, {{"b", 2}, {"t", 11}});
  int attentions = 0;
  for (const Plan::Step& step : player->player.plan().steps) attentions += step.op == "attention" ? 1 : 0;
  CHECK(attentions == 2);
}

TEST_CASE("Llama in a folder: 40 tokens of greedy continuation, with caches and without") {
  for (const Llama& llama : both) {
    CAPTURE(llama.name);
    const std::int64_t* first = llama.expected("continuation").as<std::int64_t>();
    Model model = llama.open();
    GenerateOptions options;
    options.tokens = 40;
    options.context = 64;
    options.sampling.temperature = 0;
    CHECK(generate(model, llama.row(8), options) == Tokens(first, first + 40));
    CHECK(whole::generate(model, llama.row(8), options) == Tokens(first, first + 40));
  }
}

TEST_CASE("Llama in a folder: logits of pieces by caches are those of the whole, whatever pads the rows beside") {
  for (const Llama& llama : both) {
    Model model = llama.open();
    const Store whole = model.play("logits", {{"tokens", token_array({llama.row(11)})}});
    const std::vector<double> expected = numbers(whole[0].value);
    Predictor predictor(model);
    predictor.begin(2);
    std::vector<double> found;
    const auto add = [&](const ArrayView& logits, std::int64_t places) {
      const std::vector<double> all = numbers(logits);  // of two rows, the first of which is looked at
      found.insert(found.end(), all.begin(), all.begin() + places * logits.shape()[2]);
    };
    const Tokens row = llama.row(11);
    add(predictor.step(token_array({Tokens(row.begin(), row.begin() + 5), Tokens{1}}, 3), {5, 1}), 5);
    add(predictor.step(token_array({Tokens(row.begin() + 5, row.begin() + 7), {7, 7, 7, 7}}, 9), {2, 4}), 2);
    for (std::size_t i = 7; i < 11; ++i) add(predictor.step(token_array({{row[i]}, {4}})), 1);
    CHECK(test::worst(found, expected) < 1e-12);
  }
}

TEST_CASE("Llama in a folder: written again in the spelling that it came in") {
  for (const Llama& llama : both) {
    CAPTURE(llama.name);
    const std::string from = llama_folders + llama.name;
    const Folder to;
    save_hugging_face(llama.open(Dtype::float32), to.path(), from);
    CHECK(llama.difference(llama.open(Dtype::float64, to.path())) < 1e-12);
    nlohmann::json before = config_in(from), after = config_in(to.path());
    for (nlohmann::json* config : {&before, &after})
      for (const char* key : {"dtype", "torch_dtype", "head_dim"}) config->erase(key);
    CHECK(after == before);
    CHECK(config_in(to.path())["head_dim"] == (llama.name == "nested" ? 6 : 4));
  }
}

TEST_CASE("Llama that came from no folder: written with nested keys, read as it was") {
  for (const bool scaled : {false, true}) {
    ModelOptions options;
    for (const auto& [name, text] : {std::pair{"vocab_size", "20"},
                                     {"d_model", "8"},
                                     {"d_ff", "6"},
                                     {"heads", "2"},
                                     {"key_value_heads", "1"},
                                     {"layers", "1"},
                                     {"rope_theta", "77"}})
      options.hyper.emplace_back(name, text);
    if (scaled) options.hyper.insert(options.hyper.end(), {{"rope_scaling", "'llama3'"}, {"rope_factor", "4"}});
    Model model = Model::load(source_root() + "/models/llama.json", options);
    const Folder to;
    save_hugging_face(model, to.path());
    const nlohmann::json config = config_in(to.path());
    CHECK(config["rope_parameters"] == (scaled
                                            ? nlohmann::json{{"rope_theta", 77}, {"rope_type", "llama3"}, {"factor", 4}}
                                            : nlohmann::json{{"rope_theta", 77}}));
    CHECK(!config.contains("rope_theta"));
    Model again = both[0].open(Dtype::float32, to.path());
    const Array tokens = token_array({{1, 2, 3, 19, 0, 5}});
    CHECK(numbers(again.play("logits", {{"tokens", tokens}})[0].value) ==
          numbers(model.play("logits", {{"tokens", tokens}})[0].value));
  }
}

TEST_CASE("Llama with positions scaled in a way that the definition cannot is refused") {
  const Folder folder(llama_folders + "flat");
  nlohmann::json config = config_in(folder.path());
  config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  folder.write("config.json", config.dump(1));
  CHECK_THROWS_WITH_AS(both[1].open(Dtype::float32, folder.path()),
                       doctest::Contains("'rope_scaling.type' is \"dynamic\"; the definition supports default, llama3"),
                       DefinitionError);
}
