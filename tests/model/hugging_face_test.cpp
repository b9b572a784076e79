// Folders of the Hugging Face Hub: what definitions say of them, and what may be wrong with one.
#include "xtape/hugging_face.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "folders.hpp"
#include "model/hugging_face/mapping.hpp"
#include "source_root.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using doctest::Contains;
using test::Folder;

namespace {
const std::string gpt2 = source_root() + "/models/gpt2.json";
const std::string published = source_root() + "/tests/golden/data/hugging_face/tiny";

Model opened(const std::string& folder) {
  return open_hugging_face(folder, {}, gpt2);
}

/// The published folder with one word of its config changed.
std::string with(const Folder& folder, const std::string& key, const nlohmann::json& value) {
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(std::ifstream(published + "/config.json"));
  config[key] = value;
  folder.write("config.json", config.dump(2));
  return folder.path();
}

std::string complaint(const std::string& key, const nlohmann::json& value) {
  const Folder folder(published);
  try {
    opened(with(folder, key, value));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The published folder with other tensors.
std::string complaint(const std::function<void(std::vector<Store::Entry>&)>& change) {
  const Folder folder(published);
  const Store published_arrays = load_arrays(folder / "model.safetensors");
  std::vector<Store::Entry> entries(published_arrays.begin(), published_arrays.end());
  change(entries);
  Store store;
  for (const Store::Entry& entry : entries) store.add(entry.name, Array(entry.value));
  save_arrays(folder / "model.safetensors", store);
  try {
    opened(folder.path());
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a config gives the hyper-parameters; what it leaves out or null keeps its default") {
  const Folder folder(published);
  with(folder, "resid_pdrop", 0.25);
  const Model model = opened(folder.path());
  const Hyper& hyper = model.hyper();
  CHECK(hyper.integer("vocab_size") == 97);
  CHECK(hyper.integer("n_positions") == 80);
  CHECK(hyper.integer("n_inner") == 64);  // null
  CHECK(hyper.text("activation") == "gelu_tanh");
  CHECK(hyper.number("resid_dropout_rate") == 0.25);
  CHECK(hyper.number("attn_dropout_rate") == 0.1);
  CHECK(hyper.number("std") == 0.2);
  CHECK(hyper.flag("tied"));
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config.erase("n_positions");
  config["n_ctx"] = 80;  // its older name
  config.erase("layer_norm_epsilon");
  folder.write("config.json", config.dump());
  const Model older = opened(folder.path());
  CHECK(older.hyper().integer("n_positions") == 80);
  CHECK(older.hyper().number("epsilon") == 1e-5);
}

TEST_CASE("what the caller sets stands above the config, also for what follows from it") {
  ModelOptions options;
  options.hyper = {{"dropout_rate", "0.5"}, {"attn_dropout_rate", "0"}};
  const Model model = open_hugging_face(published, options, gpt2);
  CHECK(model.hyper().number("embd_dropout_rate") == 0.5);
  CHECK(model.hyper().number("resid_dropout_rate") == 0.5);
  CHECK(model.hyper().number("attn_dropout_rate") == 0);
}

TEST_CASE("a config that asks for what the definition cannot do is refused, with its line") {
  holds(complaint("model_type", "llama"),
        "config.json, line 14: 'model_type' is \"llama\", and " + gpt2 + " is for \"gpt2\"");
  holds(complaint("activation_function", "quick_gelu"),
        "'activation_function' is \"quick_gelu\"; the definition supports gelu_new, gelu_pytorch_tanh, gelu, relu");
  CHECK(complaint("add_cross_attention", nullptr) == "");  // off, as false is
  holds(complaint("add_cross_attention", true), "'add_cross_attention' is true, but " + gpt2 + " supports only false");
  holds(complaint("n_layer", nlohmann::json::array({1})), "is an integer, and cannot be (1,)");
  holds(complaint("n_layer", 2.5), "hyper-parameter 'n_layer'");
  const Folder folder(published);
  with(folder, "model_type", "no_such_model");
  CHECK_THROWS_WITH_AS(open_hugging_face(folder.path()), Contains("there is no definition of that name"),
                       DefinitionError);
  with(folder, "model_type", "../models/gpt2");
  CHECK_THROWS_WITH_AS(open_hugging_face(folder.path()), Contains("there is no definition of that name"),
                       DefinitionError);
  CHECK_THROWS_WITH_AS(open_hugging_face(published, {}, source_root() + "/models/lstm_lm.json"),
                       Contains("has no entry \"hugging_face\""), DefinitionError);
}

TEST_CASE("weights that are missing, surplus or of the wrong shape are named with their file") {
  const std::string missing = complaint([](auto& entries) { entries.erase(entries.begin()); });
  holds(missing, "model.safetensors' do not fit model 'gpt2'");
  holds(missing, "missing: h.0.attn.c_attn.bias (48,)");
  holds(complaint([](auto& entries) {
          entries.push_back({"transformer.h.2.ln_1.weight", Array(Dtype::float32, {16})});
        }),
        "unexpected: transformer.h.2.ln_1.weight");
  holds(complaint([](auto& entries) {
          entries[1].value = Array(Dtype::float32, {48, 16});
        }),
        "of another shape: transformer.h.0.attn.c_attn.weight is (48, 16), the model's is (16, 48)");
  holds(complaint([](auto& entries) {
          entries[1].value = Array(Dtype::int64, {16, 48});
        }),
        "of another dtype: transformer.h.0.attn.c_attn.weight is int64");
  holds(complaint([](auto& entries) {
          entries.push_back({"wpe.weight", Array(Dtype::float32, {80, 16})});
        }),
        "there twice: ");
  const std::string untied = complaint("tie_word_embeddings", false);
  holds(untied, "missing: lm_head.weight (97, 16)");
}

TEST_CASE("a folder without config, without weights, or whose index is wrong is refused") {
  CHECK(is_hugging_face(published));
  CHECK(!is_hugging_face(published + "/config.json"));
  const Folder empty;
  CHECK(!is_hugging_face(empty.path()));
  CHECK_THROWS_WITH_AS(opened(empty.path()), Contains("has no config.json"), FileError);
  const Folder folder(published);
  std::filesystem::remove(folder / "model.safetensors");
  CHECK_THROWS_WITH_AS(opened(folder.path()), Contains("has no model.safetensors and no model.safetensors.index.json"),
                       FileError);
  ModelOptions look;
  look.initialise = false;
  CHECK(open_hugging_face(folder.path(), look, gpt2).parameter_count() == 97 * 16 + 80 * 16 + 2 * 3280 + 32);
  folder.write("model.safetensors.index.json", R"({"weight_map": {"wte.weight": "../one.safetensors"}})");
  CHECK_THROWS_WITH_AS(opened(folder.path()),
                       Contains("the name of a file in this folder belongs here for 'wte.weight'"), FileError);
  folder.write("model.safetensors.index.json", R"({"weight_map": {"wte.weight": "one.safetensors"}})");
  CHECK_THROWS_WITH_AS(opened(folder.path()), Contains("one.safetensors"), FileError);
  folder.write("model.safetensors.index.json", "{}");
  CHECK_THROWS_WITH_AS(opened(folder.path()), Contains("the key \"weight_map\" is missing"), FileError);
}

TEST_CASE("what is saved is what was opened, with the tokenizer's files") {
  const Folder folder(published);
  folder.write("merges.txt", "#version: 0.2\nt h\n");
  folder.write("vocab.json", "{}");
  folder.write("pytorch_model.bin", "not for us");
  const Folder made;
  const std::string again = made / "new/folder";
  save_hugging_face(opened(folder.path()), again, folder.path());
  for (const char* file : {"config.json", "model.safetensors", "merges.txt", "vocab.json", "generation_config.json"})
    CHECK(std::filesystem::exists(again + "/" + file));
  CHECK(!std::filesystem::exists(again + "/pytorch_model.bin"));
  const Store before = load_arrays(published + "/model.safetensors");
  const Store after = load_arrays(again + "/model.safetensors");
  CHECK(after.size() == before.size());
  for (const Store::Entry& entry : before) {
    const Array& other = after.at(entry.name);
    CHECK(std::equal(entry.value.as<float>(), entry.value.as<float>() + entry.value.count(), other.as<float>()));
  }
  save_hugging_face(opened(again), again, again);  // over itself
  CHECK(opened(again).hyper().integer("n_positions") == 80);
}

TEST_CASE("words of a config that mean the same stay, others are set right") {
  const Folder folder(published);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(published + "/config.json"));
  config["n_ctx"] = 80;
  config["activation_function"] = "gelu_pytorch_tanh";
  config["torch_dtype"] = "float16";
  config["task_specific_params"] = {{"text-generation", {{"max_length", 50}}}};
  folder.write("config.json", config.dump());
  const Folder made;
  const auto saved = [&](const ModelOptions& options) {
    save_hugging_face(open_hugging_face(folder.path(), options, gpt2), made.path(), folder.path());
    return nlohmann::json::parse(std::ifstream(made / "config.json"));
  };
  nlohmann::json expected = config;
  expected["n_inner"] = 64;
  expected.erase("torch_dtype");
  CHECK(saved({}) == expected);
  ModelOptions options;
  options.dtype = Dtype::float64;
  options.hyper = {{"activation", "relu"}, {"epsilon", "0.5"}};
  expected["activation_function"] = "relu";
  expected["layer_norm_epsilon"] = 0.5;
  expected["dtype"] = "float64";
  CHECK(saved(options) == expected);
}

TEST_CASE("a model that such a folder has no words for is not saved as one") {
  const Folder made;
  ModelOptions options;
  options.hyper = {{"vocab_size", "5"}, {"n_positions", "4"}, {"n_embd", "4"},
                   {"n_layer", "1"},    {"n_head", "1"},      {"bias", "false"}};
  CHECK_THROWS_WITH_AS(save_hugging_face(Model::load(gpt2, options), made / "a"),
                       Contains("has 'bias' = false, but a GPT2LMHeadModel supports only true"), DefinitionError);
  const Model bigram = Model::load(source_root() + "/models/lstm_lm.json", {{}, 0, Dtype::float32, nullptr, false});
  CHECK_THROWS_WITH_AS(save_hugging_face(bigram, made / "b"), Contains("has no entry \"hugging_face\""),
                       DefinitionError);
  CHECK(!std::filesystem::exists(made / "a"));
}

TEST_CASE("an entry \"hugging_face\" is checked with its definition") {
  const auto complaint_of = [](const std::string& entry) -> std::string {
    const std::string text = R"({"xtape": 2, "hyper": {"width": 2}, "hugging_face": )" + entry +
                             R"(, "model": {"weights": {"w": {"shape": ["width"], "init": "ones"}},
                                "functions": {"f": {"inputs": {"x": "float [n, width]"}, "result": "x * w"}}}})";
    try {
      Model::parse(text);
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "";
  };
  const std::string start = R"({"model_type": "m", "architecture": "M", )";
  CHECK(complaint_of(start + R"("hyper": {"width": ["d", "dim"]}})") == "");
  holds(complaint_of(start + R"("hyper": {"widht": "d"}})"),
        "there is no hyper-parameter 'widht'; did you mean 'width'");
  holds(complaint_of(start + R"("hypr": {}})"), "did you mean 'hyper'");
  holds(complaint_of(start + R"("hyper": {"width": []}})"), "at least one text belongs here");
  holds(complaint_of(start + R"("hyper": {}, "weights": {"tied": {"a": {"weight": "b", "hyper": "c"}}}})"),
        "there is no hyper-parameter 'c'");
}

TEST_CASE("a star in a pattern stands for anything without a dot") {
  using model::matches;
  CHECK(matches("h.0.attn.bias", "h.*.attn.bias"));
  CHECK(matches("h.11.attn.bias", "h.*.attn.bias"));
  CHECK(!matches("h.0.attn.c_attn.bias", "h.*.attn.bias"));
  CHECK(!matches("h.0.1.attn.bias", "h.*.attn.bias"));
  CHECK(!matches("h.0.attn.bias.more", "h.*.attn.bias"));
  CHECK(matches("abcb", "a*b"));
  CHECK(matches("", "*"));
  CHECK(!matches("a", ""));
}
