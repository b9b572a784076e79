// What an entry "hugging_face" can say: keys inside keys, defaults, and what is ignored.
#include <doctest/doctest.h>

#include "small_folder.hpp"

namespace small_folder {

using doctest::Contains;

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

}  // namespace small_folder
