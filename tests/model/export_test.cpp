// Weights that blocks merge when a model is exported, and the check of every folder that is written.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using doctest::Contains;
using test::Folder;

namespace {
/// Sets the directory of the installed definitions.
struct Installed {
  explicit Installed(const std::string& path) { setenv("XTAPE_MODELS", path.c_str(), 1); }
  ~Installed() { unsetenv("XTAPE_MODELS"); }
};

/// Numbers that no initialiser gives.
void fill(const Array& array, double scale) {
  Array shared(array);
  for (std::int64_t i = 0; i < shared.count(); ++i) {
    const double number = scale * std::sin(static_cast<double>(i * i + 1));
    if (shared.dtype() == Dtype::float64)
      shared.as<double>()[i] = number;
    else
      shared.as<float>()[i] = static_cast<float>(number);
  }
}

const std::string plain = R"json({
  "xtape": 2, "name": "plain", "hyper": {"width": 3, "classes": 5, "with_bias": true},
  "hugging_face": {
    "model_type": "plain", "architecture": "Plain",
    "hyper": {"width": "width", "classes": "classes", "with_bias": {"keys": "bias", "default": true}},
    "weights": {"prefix": "model."}
  },
  "blocks": {
    "linear": {
      "weights": {"weight": {"shape": ["classes", "width"], "init": "normal"},
                  "bias": {"shape": ["classes"], "init": "normal", "when": "with_bias"}},
      "inputs": ["x"], "result": "einsum('... in, out in -> ... out', x, weight) + bias"
    }
  },
  "model": {
    "modules": {"head": {"block": "linear"}},
    "functions": {"scores": {"inputs": {"x": "float [n, width]"}, "result": "head(x)"}}
  }
})json";

/// Adapters around the linear map, in the layout of [out, in], with the entry "export" of their block.
std::string adapted(const std::string& entry) {
  return R"json({
  "xtape": 2, "name": "adapted", "extends": "plain.json", "hyper": {"rank": 2, "alpha": 3},
  "blocks": {"adapter": {
    "modules": {"base": {"block": "linear"}},
    "weights": {"lora_A": {"shape": ["rank", "width"], "init": "normal"},
                "lora_B": {"shape": ["classes", "rank"], "init": "zeros"}},
    "inputs": ["x"],
    "result": "base(x) + 1.0 * alpha / rank * einsum('... r, out r -> ... out', einsum('... in, r in -> ... r', x, lora_A), lora_B)")json" +
         (entry.empty() ? "" : ",\n    \"export\": " + entry) + R"json(
  }},
  "model": {"modules": {"head": {"block": "adapter"}}}
})json";
}
const std::string right = R"({"weight": "base.weight + 1.0 * alpha / rank * lora_B @ lora_A", "bias": "base.bias"})";

/// The two definitions in a folder, where they are found.
struct Definitions {
  Folder folder;
  Installed installed{folder.path()};
  Definitions() { folder.write("plain.json", plain); }

  Model trained(const std::string& entry, const ModelOptions& options = {}) const {
    Model model = Model::load(folder.write("adapted.json", adapted(entry)), options);
    fill(model.weights().at("head.lora_B"), 0.5);
    return model;
  }
  std::string refusal(const std::string& entry) const {
    const Folder made;
    try {
      save_hugging_face(trained(entry), made / "out");
    } catch (const Error& error) {
      CHECK(std::filesystem::is_empty(made.path()));
      return error.what();
    }
    return "";
  }
};

bool contains(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("export: adapters are merged as their block says, and the folder is that of the plain model") {
  const Definitions definitions;
  for (const bool with_bias : {true, false}) {
    ModelOptions options;
    options.dtype = Dtype::float64;
    options.hyper = {{"with_bias", with_bias ? "true" : "false"}};
    const Model model = definitions.trained(right, options);
    const Folder made;
    save_hugging_face(model, made / "out");
    const Store written = load_arrays(made / "out/model.safetensors");
    CHECK(written.size() == (with_bias ? 2 : 1));
    CHECK(written.has("model.head.bias") == with_bias);
    const auto merged = written.at("model.head.weight").to<double>();
    const auto base = model.weights().at("head.base.weight").to<double>();
    const auto a = model.weights().at("head.lora_A").to<double>(), b = model.weights().at("head.lora_B").to<double>();
    for (std::size_t out = 0; out < 5; ++out)
      for (std::size_t in = 0; in < 3; ++in) {
        double expected = base(out, in);
        for (std::size_t r = 0; r < 2; ++r) expected += 1.5 * b(out, r) * a(r, in);
        CHECK(merged(out, in) == doctest::Approx(expected).epsilon(1e-12));
      }
    ModelOptions reading;
    reading.dtype = Dtype::float64;
    Model again = open_hugging_face(made / "out", reading);
    CHECK(again.name() == "plain");
    CHECK(again.hyper().flag("with_bias") == with_bias);
  }
}

TEST_CASE("export: the adapters of GPT-2 are merged in the layout of its maps, also into narrow weights") {
  const Installed installed(source_root() + "/models");
  ModelOptions options;
  options.hyper = {{"vocab_size", "19"}, {"n_positions", "6"}, {"n_embd", "8"}, {"n_layer", "2"},
                   {"n_head", "2"},      {"rank", "2"},        {"alpha", "4"}};
  Model model = Model::load("gpt2_lora", options);
  for (const Store::Entry& entry : model.weights())
    if (entry.name.ends_with("lora_B")) fill(entry.value, 0.3);
  const Folder made;
  save_hugging_face(model, made / "out");
  Model again = open_hugging_face(made / "out");
  CHECK(again.name() == "gpt2");
  for (const Store::Entry& entry : again.weights()) CHECK(entry.name.find("lora") == std::string::npos);
  Array tokens(Dtype::int64, {1, 6});
  for (int i = 0; i < 6; ++i) tokens.as<std::int64_t>()[i] = (7 * i + 3) % 19;
  const auto ours = model.play("logits", {{"tokens", tokens}})[0].value.to<float>();
  const auto theirs = again.play("logits", {{"tokens", tokens}})[0].value.to<float>();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference += std::pow(ours.flat(i) - theirs.flat(i), 2);
    size += std::pow(ours.flat(i), 2);
  }
  CHECK(size > 0);
  CHECK(difference < 1e-10 * size);
  save_hugging_face(model, made / "small", "", Dtype::int8);
  CHECK(stored_weights(made / "small") == Dtype::int8);
  CHECK(open_hugging_face(made / "small").weights().at("h.1.mlp.c_fc.weight").dtype() == Dtype::int8);
  CHECK(model.weights().at("h.1.mlp.c_fc.weight").dtype() == Dtype::float32);
}

TEST_CASE("export: what the format does not know is named, and no folder is written") {
  const Definitions definitions;
  const std::string surplus = definitions.refusal("");
  contains(surplus, "out' is not written, because read back it is not model 'adapted': ");
  contains(surplus, "unexpected: model.head.lora_A");
  contains(surplus, "unexpected: model.head.lora_B");
  contains(surplus, "missing: head.weight (5, 3)");
  CHECK(surplus.find(".writing") == std::string::npos);
  contains(definitions.refusal(R"({"weight": "base.weight", "bias": "base.bias"})"), "unexpected: model.head.lora_A");
  contains(definitions.refusal(R"({"weight": "base.weight + (alpha / 3) * lora_B @ lora_A", "bias": "base.bias"})"),
           "'scores' differs by ");
  contains(definitions.refusal(R"json({"weight": "transpose(base.weight) + 0 * transpose(lora_B @ lora_A)",
                                       "bias": "base.bias"})json"),
           "of another shape: model.head.weight is (3, 5), the model's is (5, 3)");
}

TEST_CASE("export: a refused export leaves an existing folder as it is; a right one keeps its other files") {
  const Definitions definitions;
  const Folder made;
  made.write("model.safetensors", "mine");
  made.write("readme", "mine");
  CHECK_THROWS_AS(save_hugging_face(definitions.trained(""), made.path()), FileError);
  CHECK(std::filesystem::file_size(made / "model.safetensors") == 4);
  CHECK(!std::filesystem::exists(made / "config.json"));
  save_hugging_face(definitions.trained(right), made.path());
  CHECK(std::filesystem::exists(made / "readme"));
  CHECK(load_arrays(made / "model.safetensors").size() == 2);
  CHECK(std::distance(std::filesystem::directory_iterator(made.path()), std::filesystem::directory_iterator()) == 3);
}

TEST_CASE("export: a definition that computes something else than its model_type does is refused") {
  const Definitions definitions;
  std::string other = plain;
  other.replace(other.find(" + bias"), 7, " + 1.1 * bias");
  const Folder made;
  CHECK_THROWS_WITH_AS(save_hugging_face(Model::parse(other), made / "out"), Contains("'scores' differs by "),
                       FileError);
  CHECK(std::filesystem::is_empty(made.path()));
}

TEST_CASE("export: a model that takes no random inputs, or has no function, is compared by its weights") {
  const Installed nowhere("/nowhere");
  const std::string result = R"json("result": "head(x)")json";
  std::string choosy = plain;
  choosy.replace(choosy.find(result), result.size(), R"json("do": ["require(n == 7, 'seven rows')"], )json" + result);
  const Folder made;
  const Model model = Model::parse(choosy);
  save_hugging_face(model, made / "out");
  const Model again = open_hugging_face(made / "out", {}, made.write("choosy.json", choosy));
  CHECK(again.weights().at("head.weight").to<float>() == model.weights().at("head.weight").to<float>());
  std::string empty = plain;
  const std::size_t begin = empty.find("\"modules\": {\"head\"");
  empty.resize(begin);
  save_hugging_face(Model::parse(empty + "\"functions\": {}}}"), made / "empty");
  CHECK(load_arrays(made / "empty/model.safetensors").empty());
}

TEST_CASE("export: mistakes in an expression are errors of the definition") {
  const Definitions definitions;
  contains(definitions.refusal(R"({"weight": "base.weight + lora_C @ lora_A"})"),
           "unknown name 'lora_C'; did you mean 'lora_");
  contains(definitions.refusal(R"({"weight": "alpha"})"), "an array belongs here, not 3");
  contains(definitions.refusal(R"({"base.weight": "lora_A"})"), "cannot be a name");
  contains(definitions.refusal(R"({"weight": "lora_A @ lora_A"})"), "adapted.json, block 'adapter'");
}
