// What an entry "hugging_face" can say: keys inside keys, defaults, what is ignored, names of weights.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "folders.hpp"
#include "model/hugging_face/mapping.hpp"
#include "source_root.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using doctest::Contains;
using test::Folder;

namespace {
using Config = nlohmann::ordered_json;

const std::string mapping_text = R"json({
  "model_type": "small",
  "architecture": "SmallForCausalLM",
  "hyper": {
    "width": "sizes.width",
    "theta": {"keys": ["rope_parameters.rope_theta", "rope_theta"], "default": 10000.0},
    "factor": {"keys": ["rope_parameters.factor", "rope_scaling.factor"], "default": 1.0},
    "gated": {"keys": "projection", "values": {"relu": "false", "gated-gelu": "true"}, "default": "relu"},
    "rate": {"keys": "drop", "default": null},
    "low": {"keys": "limits.0", "default": -1.0},
    "high": {"keys": "limits.1", "default": null},
    "cap": {"keys": "logit_cap", "values": {"null": 0.0}, "default": 30.0},
    "kinds": {"keys": "layer_types", "values": {"sliding_attention": "local", "full_attention": "all"}, "default": null},
    "sizes": {"keys": "layer_sizes", "default": [1, 2.5]}
  },
  "config": {"rope_parameters.rope_type": "default"},
  "ignored": ["summary_*"],
  "weights": {
    "names": {"layers.*": "block.*.layer", "query": "q", "block.*.layer.first": "block.*.layer.0"},
    "prefix": "model."
  }
})json";

std::string definition_text(const std::string& entry) {
  return R"json({
  "xtape": 2,
  "name": "small",
  "hyper": {"width": null, "theta": 5.0, "factor": 2.0, "gated": false, "rate": 0.5, "cap": 1.0, "low": 0.0, "high": 8.0,
             "kinds": "('local',) + ('all',) * 2", "sizes": "(7,)"},
  "hugging_face": )json" +
         entry + R"json(,
  "blocks": {
    "line": {"weights": {"weight": {"shape": ["width"], "init": "ones"}}, "inputs": ["x"], "result": "x * weight"},
    "layer": {"modules": {"query": {"block": "line"}, "first": {"block": "line"}}, "inputs": ["x"], "result": "first(query(x))"}
  },
  "model": {
    "modules": {"layers": {"block": "layer", "repeat": "2"}},
    "functions": {"f": {"inputs": {"x": "float [n, width]"}, "result": "layers(x) * theta * factor + rate"}}
  }
})json";
}

/// A definition with its mapping beside it, and a folder of its model.
struct Small {
  Folder definitions, folder;
  std::string definition;

  explicit Small(const Config& config) {
    std::filesystem::create_directory(definitions / "of_folders");
    definitions.write("of_folders/small.json", mapping_text);
    definition = definitions.write("small.json", definition_text("\"of_folders/small.json\""));
    put(config);
    Store store;
    for (const char* layer : {"0", "1"})
      for (const char* name : {".layer.q.weight", ".layer.0.weight"}) {
        Array weight(Dtype::float32, {3});
        weight.as<float>()[1] = static_cast<float>(store.size() + 1);
        store.add("model.block." + std::string(layer) + name, weight);
      }
    save_arrays(folder / "model.safetensors", store);
  }
  void put(const Config& config) const { folder.write("config.json", config.dump(2)); }
  Model open(const ModelOptions& options = {}) const { return open_hugging_face(folder.path(), options, definition); }
  std::string complaint() const {
    try {
      open();
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "";
  }
  /// The config of a copy that is saved.
  Config saved(const std::string& like, const ModelOptions& options = {}) const {
    const Folder to;
    save_hugging_face(open(options), to.path(), like);
    return Config::parse(std::ifstream(to / "config.json"));
  }
};

Config least() {
  return Config::parse(R"json({"model_type": "small", "sizes": {"width": 3}})json");
}
Config config_with(const std::string& path, const Config& value) {
  Config config = least();
  config[Config::json_pointer(path)] = value;
  return config;
}
}  // namespace

TEST_CASE("keys may lie inside others; the first that is there and not null is read") {
  CHECK(Small(config_with("/rope_theta", 500.0)).open().hyper().number("theta") == 500);
  CHECK(Small(config_with("/rope_parameters/rope_theta", 500.0)).open().hyper().number("theta") == 500);
  Config both = config_with("/rope_parameters/rope_theta", 500.0);
  both["rope_theta"] = 7.0;
  CHECK(Small(both).open().hyper().number("theta") == 500);
  both["rope_parameters"]["rope_theta"] = nullptr;
  CHECK(Small(both).open().hyper().number("theta") == 7);
  both["rope_parameters"] = 3;  // no object: it holds no key
  CHECK(Small(both).open().hyper().number("theta") == 7);
  CHECK(Small(config_with("/rope_scaling/factor", 8.0)).open().hyper().number("factor") == 8);
}

TEST_CASE("what a config leaves out is what the mapping states, or else an error") {
  const Small small(least());
  const Model model = small.open();
  CHECK(model.hyper().number("theta") == 10000);
  CHECK(model.hyper().number("factor") == 1);
  CHECK(!model.hyper().flag("gated"));
  CHECK(model.hyper().number("rate") == 0.5);  // null: the definition's own
  for (const Config& sizes : {Config(Config::object()), Config(Config{{"width", nullptr}}), Config(3)}) {
    Config config = least();
    config["sizes"] = sizes;
    small.put(config);
    const std::string complaint = small.complaint();
    CAPTURE(complaint);
    CHECK(complaint.find(small.folder / "config.json") != std::string::npos);
    const bool null = sizes.is_object() && !sizes.empty();
    CHECK(complaint.find(null ? "gives 'width' no value for null"
                              : "the key 'sizes.width' for the hyper-parameter "
                                "'width'") != std::string::npos);
  }
  ModelOptions options;  // what the caller gives needs no key
  options.hyper = {{"width", "3"}};
  CHECK(small.open(options).hyper().integer("width") == 3);
}

TEST_CASE("a list of a config becomes a tuple, and the reverse") {
  const auto text = [](const Model& model, const char* name) { return to_string(model.hyper().at(name)); };
  const Config plain{{"model_type", "small"}, {"sizes", {{"width", 3}}}};
  Small small(plain);
  CHECK(text(small.open(), "kinds") == "('local', 'all', 'all')");
  CHECK(text(small.open(), "sizes") == "(1, 2.5)");
  Config config = plain;
  config["layer_types"] = {"full_attention", "sliding_attention"};
  config["layer_sizes"] = {4};
  small.put(config);
  const Model model = small.open();
  CHECK(text(model, "kinds") == "('all', 'local')");
  CHECK(text(model, "sizes") == "(4,)");
  CHECK(text(Model::parse(model.definition_text()), "kinds") == "('all', 'local')");
  const auto written = [&](const Model& from, const std::string& like) {
    const Folder to;
    save_hugging_face(from, to.path(), like);
    return Config::parse(std::ifstream(to / "config.json"));
  };
  CHECK(written(model, "")["layer_types"] == config["layer_types"]);
  CHECK(written(model, small.folder.path())["layer_sizes"] == config["layer_sizes"]);
  ModelOptions other;
  other.hyper = {{"kinds", "('all',)"}};
  CHECK(written(small.open(other), small.folder.path())["layer_types"] == Config{"full_attention"});
  config["layer_sizes"] = {"it's", R"(a\b)", "', 'c"};  // texts, not parts of an expression
  small.put(config);
  const Model quoting = small.open();
  CHECK(text(quoting, "sizes") == R"(('it\'s', 'a\\b', '\', \'c'))");
  CHECK(text(Model::parse(quoting.definition_text()), "sizes") == text(quoting, "sizes"));
  config["layer_types"] = {"full_attention", "chunked"};
  small.put(config);
  CHECK_THROWS_WITH_AS(
      small.open(), Contains("'layer_types' is \"chunked\"; the definition supports sliding_attention, full_attention"),
      DefinitionError);
  config["layer_types"] = {{1}};
  small.put(config);
  CHECK_THROWS_WITH_AS(small.open(), Contains("an element of 'layer_types' is a number, a flag or a text"),
                       DefinitionError);
}

TEST_CASE("null in a config is a value: that of the entry's values, or an error") {
  CHECK(Small(config_with("/logit_cap", nullptr)).open().hyper().number("cap") == 0);
  CHECK(Small(config_with("/logit_cap", 12.5)).open().hyper().number("cap") == 12.5);
  CHECK(Small(least()).open().hyper().number("cap") == 30);
  CHECK(Small(config_with("/drop", nullptr)).open().hyper().number("rate") == 0.5);  // null is its default
  const std::string refused = Small(config_with("/rope_theta", nullptr)).complaint();
  CHECK(refused.find("config.json, line ") != std::string::npos);
  CHECK(refused.find("this is null, and the entry \"hugging_face\" of ") != std::string::npos);
  CHECK(refused.find("gives 'theta' no value for null: write \"values\": {\"null\": …}") != std::string::npos);
  Config fixed = least();
  fixed["rope_parameters"]["rope_type"] = nullptr;
  CHECK(Small(fixed).complaint().find("'rope_parameters.rope_type' is null, but ") != std::string::npos);
  fixed["rope_parameters"] = nullptr;  // an object that is not there
  CHECK(Small(fixed).complaint() == "");
}

TEST_CASE("null is written for the value that it stands for, and stays") {
  const Small small(config_with("/logit_cap", nullptr));
  CHECK(small.saved(small.folder.path())["logit_cap"].is_null());
  ModelOptions options;
  options.hyper = {{"cap", "0"}};
  const Small other(config_with("/logit_cap", 7.0));
  CHECK(other.saved("", options)["logit_cap"].is_null());
  CHECK(other.saved(other.folder.path(), options)["logit_cap"].is_null());
  options.hyper = {{"cap", "8"}};
  CHECK(small.saved(small.folder.path(), options)["logit_cap"] == 8.0);
}

TEST_CASE("numbers that are not finite are read and written as Python's json spells them") {
  const Small small(least());
  const auto put = [&](const std::string& number) {
    small.folder.write("config.json",
                       R"({"model_type": "small", "sizes": {"width": 3}, "other": NaN, "logit_cap": )" + number + "}");
  };
  put("Infinity");
  CHECK(small.open().hyper().number("cap") == HUGE_VAL);
  const Folder to;
  save_hugging_face(small.open(), to.path(), small.folder.path());
  std::stringstream text;
  text << std::ifstream(to / "config.json").rdbuf();
  CHECK(text.str().find("\"logit_cap\": Infinity") != std::string::npos);
  CHECK(text.str().find("\"other\": NaN") != std::string::npos);
  CHECK(open_hugging_face(to.path(), {}, small.definition).hyper().number("cap") == HUGE_VAL);
  put("-Infinity");
  CHECK(small.open().hyper().number("cap") == -HUGE_VAL);
  put("NaN");
  CHECK(small.complaint().find("'logit_cap' must be a number, a flag or a text, not NaN") != std::string::npos);
}

TEST_CASE("keys lead into lists, and infinity may be an object, as transformers 5 writes it") {
  const Config infinity = {{"__float__", "Infinity"}}, limits = Config::array({0.25, infinity});
  const Small small(config_with("/limits", limits));
  CHECK(small.open().hyper().number("low") == 0.25);
  CHECK(small.open().hyper().number("high") == HUGE_VAL);
  CHECK(hugging_face_warnings(small.folder.path(), small.definition).empty());
  CHECK(small.saved(small.folder.path())["limits"] == limits);
  ModelOptions options;
  options.hyper = {{"high", "2.0"}};
  CHECK(small.saved(small.folder.path(), options)["limits"] == Config::array({0.25, 2.0}));
  CHECK(small.saved("", options)["limits"] == Config::array({0.25, 2.0}));
  CHECK(Small(config_with("/limits", Config::array({0.25}))).open().hyper().number("high") == 8);
  CHECK(Small(least()).open().hyper().number("low") == -1);
  small.put(config_with("/limits", Config::array({0.25, Config{{"__float__", "many"}}})));
  CHECK(small.complaint().find("'limits.1'") != std::string::npos);
}

TEST_CASE("words of a config may be flags, and what is fixed may lie inside an object") {
  CHECK(Small(config_with("/projection", "gated-gelu")).open().hyper().flag("gated"));
  CHECK_THROWS_WITH_AS(Small(config_with("/projection", "gated-silu")).open(),
                       Contains("'projection' is \"gated-silu\"; the definition supports relu, gated-gelu"),
                       DefinitionError);
  CHECK_THROWS_WITH_AS(Small(config_with("/rope_parameters/rope_type", "yarn")).open(),
                       Contains("'rope_parameters.rope_type' is \"yarn\", but "), DefinitionError);
  CHECK_THROWS_WITH_AS(Small(config_with("/sizes/width", Config::array({1}))).open(),
                       Contains("an integer belongs here, not (1,)"), DefinitionError);
}

TEST_CASE("a folder is written in the spelling that the one it came from used") {
  for (const bool nested : {false, true}) {
    const std::string path = nested ? "/rope_parameters/rope_theta" : "/rope_theta";
    Config config = config_with(path, 500.0);
    const Small small(config);
    const std::string like = small.folder.path();
    const Config same = small.saved(like);
    CHECK(same[Config::json_pointer(path)] == 500.0);
    CHECK(same.contains("rope_theta") == !nested);
    CHECK(same["rope_parameters"].contains("rope_theta") == nested);
    ModelOptions options;
    options.hyper = {{"theta", "12.5"}, {"gated", "true"}, {"rate", "0.25"}};
    const Config other = small.saved(like, options);
    CHECK(other[Config::json_pointer(path)] == 12.5);
    CHECK(other.contains("rope_theta") == !nested);
    CHECK(other["projection"] == "gated-gelu");
    CHECK(other["drop"] == 0.25);
    small.put(other);
    CHECK(small.open().hyper().number("theta") == 12.5);
    CHECK(small.open().hyper().flag("gated"));
  }
  // Two spellings that say different things become one.
  Config both = config_with("/rope_parameters/rope_theta", 500.0);
  both["rope_theta"] = 7.0;
  const Small small(both);
  ModelOptions options;
  options.hyper = {{"theta", "9"}};
  const Config saved = small.saved(small.folder.path(), options);
  CHECK(saved["rope_parameters"]["rope_theta"] == 9);
  CHECK(!saved.contains("rope_theta"));
}

TEST_CASE("a folder that came from none has the first spelling, and no default inside an object") {
  const Small small(least());
  Config saved = small.saved("");
  CHECK(saved["sizes"]["width"] == 3);
  CHECK(saved["projection"] == "relu");
  CHECK(saved["rope_parameters"] == Config{{"rope_type", "default"}});
  ModelOptions options;
  options.hyper = {{"theta", "500"}, {"factor", "4"}};
  saved = small.saved("", options);
  CHECK(saved["rope_parameters"]["rope_theta"] == 500);
  CHECK(saved["rope_parameters"]["factor"] == 4);
  CHECK(!saved.contains("rope_theta"));
  CHECK(!saved.contains("rope_scaling"));
}

TEST_CASE("keys that nobody knows are named in one warning, and what says nothing of the model is not") {
  Config config = config_with("/rope_parameters/rope_theta", 500.0);
  config["rope_parameters"]["rope_type"] = "default";
  for (const char* key :
       {"transformers_version", "torch_dtype", "_name_or_path", "use_cache", "eos_token_id", "summary_type"})
    config[key] = "x";
  config["task_specific_params"] = {{"anything", {{"at", "all"}}}};
  config["sliding_window"] = nullptr;
  const Small small(config);
  const auto warnings = [&] { return hugging_face_warnings(small.folder.path(), small.definition); };
  CHECK(warnings().empty());
  config["sliding_window"] = 4096;
  config["rope_parameters"]["beta_fast"] = 32;
  config["other"] = {{"deep", 1}};
  small.put(config);
  REQUIRE(warnings().size() == 1);
  CHECK(warnings()[0] == small.folder / "config.json" + " has keys that " + small.definition +
                             " does not know and ignores: 'rope_parameters.beta_fast', "
                             "'sliding_window', 'other'");
}

TEST_CASE("files that are not read and keys of generation that are not known are named, others are not") {
  const Small small(least());
  const auto warnings = [&] { return hugging_face_warnings(small.folder.path(), small.definition); };
  for (const char* name : {"README.md", "LICENSE", ".gitattributes", "pytorch_model.bin", "training_args.bin", "a.py",
                           "tokenizer.model", "added_tokens.json", "vocab.txt", "onnx/model.json", "picture.png"})
    small.folder.write(name, "");
  small.folder.write("generation_config.json",
                     R"({"eos_token_id": [1, 2], "temperature": 0.5, "do_sample": true, "repetition_penalty": 1.0,
                         "num_beams": 1, "typical_p": null, "no_repeat_ngram_size": 0, "_from_model_config": true})");
  CHECK(warnings().empty());
  small.folder.write("generation_config.json", R"({"num_beams": 4, "min_p": 0.1, "top_k": 50})");
  small.folder.write("rules.json", "{}");
  REQUIRE(warnings().size() == 2);
  CHECK(warnings()[0] == small.folder / "generation_config.json" +
                             " has keys that xtape does not know and ignores: 'num_beams', 'min_p'");
  CHECK(warnings()[1] == small.folder.path() + " has a file that is not read: 'rules.json'");
  small.folder.write("model-00001-of-00002.safetensors", "");  // beside model.safetensors, which is read
  CHECK(warnings()[1] ==
        small.folder.path() + " has files that are not read: 'model-00001-of-00002.safetensors', 'rules.json'");
  small.folder.write("generation_config.json", "{");
  CHECK_THROWS_WITH_AS(warnings(), doctest::Contains("generation_config.json, line 1"), FileError);
}

TEST_CASE("weights have other names in folders, there and back") {
  const Small small(least());
  const Model model = small.open();
  REQUIRE(model.weights().size() == 4);
  for (const auto& [name, number] : {std::pair{"layers.0.query.weight", 1.0F},
                                     {"layers.0.first.weight", 2.0F},
                                     {"layers.1.query.weight", 3.0F},
                                     {"layers.1.first.weight", 4.0F}}) {
    CHECK(model.weights().at(name).as<float>()[1] == number);
  }
  const Folder to;
  save_hugging_face(model, to.path());
  const Store written = load_arrays(to / "model.safetensors"), read = load_arrays(small.folder / "model.safetensors");
  CHECK(written.size() == read.size());
  for (const Store::Entry& entry : read) CHECK(written.at(entry.name).as<float>()[1] == entry.value.as<float>()[1]);
  std::filesystem::remove(small.folder / "model.safetensors");
  Store none;
  none.add("model.block.0.layer.w.weight", Array(Dtype::float32, {3}));
  save_arrays(small.folder / "model.safetensors", none);
  CHECK_THROWS_WITH_AS(small.open(), Contains("unexpected: model.block.0.layer.w.weight"), FileError);
}

TEST_CASE("names: every entry in turn, whole words, a star for the same in both") {
  model::HuggingFaceMapping mapping;
  mapping.names = {{"encoder.*", "encoder.block.*"}, {"a.*.b.*", "x.*.*"}, {"q", "query"}};
  CHECK(tensor_name(mapping, "encoder.3.q.weight") == "encoder.block.3.query.weight");
  CHECK(tensor_name(mapping, "encoder_norm.weight") == "encoder_norm.weight");
  CHECK(tensor_name(mapping, "z.a.1.b.2.qq") == "z.x.1.2.qq");
  CHECK(tensor_name(mapping, "encoder") == "encoder");
  CHECK(tensor_name(mapping, "q") == "query");
}

TEST_CASE("a mapping in a file of its own is found as used files are, and stands inside the one text") {
  const Small small(least());
  const Model model = small.open();
  const auto text = nlohmann::json::parse(model.definition_text());
  CHECK(text["hugging_face"] == nlohmann::json::parse(mapping_text));
  const Folder to;
  std::filesystem::remove_all(small.definitions / "of_folders");
  save_hugging_face(Model::parse(model.definition_text()), to.path());
  CHECK(std::filesystem::exists(to / "config.json"));
  CHECK_THROWS_WITH_AS(small.open(), Contains("cannot find 'of_folders/small.json'"), DefinitionError);
  // The same entry in its place.
  const std::string inside = small.definitions.write("inside.json", definition_text(mapping_text));
  CHECK(open_hugging_face(small.folder.path(), {}, inside).hyper().integer("width") == 3);
  // Mistakes are of the mapping's file.
  std::filesystem::create_directory(small.definitions / "of_folders");
  small.definitions.write("of_folders/small.json", R"({"model_type": "small", "architecture": "S", "hypr": {}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("of_folders/small.json, line 1"), DefinitionError);
  small.definitions.write(
      "of_folders/small.json",
      R"({"model_type": "small", "architecture": "S", "hyper": {}, "weights": {"names": {"a": "*"}}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("each star here needs a star in 'a'"), DefinitionError);
  small.definitions.write("of_folders/small.json", R"({"model_type": "small", "architecture": {}, "hyper": {}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("at least one architecture belongs here"), DefinitionError);
  small.definitions.write("of_folders/small.json", R"({"model_type": "small", "architecture": "S", "hyper": {"width":
    {"keys": "labels", "count": true, "values": {"null": 0}}}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("a count has no \"values\""), DefinitionError);
}
