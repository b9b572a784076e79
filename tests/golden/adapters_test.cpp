// Low-rank adapters in PEFT's format, against what PEFT computes (adapters.py).
#include <nlohmann/json.hpp>
#include <sstream>

#include "fixture.hpp"
#include "folders.hpp"
#include "xtape/hugging_face.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string adapter_folders = source_root() + "/tests/golden/data/adapters/";

/// A folder of adapters, their number, and what the definition calls the modules that have one.
struct Adapted {
  std::string name, base, targets;
  std::int64_t count;
  std::string folder() const { return adapter_folders + name; }
  std::string base_folder() const { return source_root() + "/tests/golden/data/" + base; }
  Array expected(const std::string& what) const {
    static const Store arrays = test::golden("adapters/expected.safetensors");
    return Array(arrays.at(name + "." + what));
  }
  Model open(Dtype dtype = Dtype::float64, const std::string& adapter = "") const {
    ModelOptions options;
    options.dtype = dtype;
    return open_hugging_face(base_folder(), options, "", {}, adapter.empty() ? folder() : adapter);
  }
  /// The largest difference between the model's logits at the last two places and those expected.
  double difference(Model model) const {
    const Array logits = model.play("logits", {{"tokens", expected("tokens")}})[0].value;
    const std::vector<double> values = numbers(logits);
    const auto row = static_cast<std::ptrdiff_t>(values.size() / 2);
    const auto kept = static_cast<std::ptrdiff_t>(2 * logits.shape()[2]);
    std::vector<double> last(values.begin() + row - kept, values.begin() + row);
    last.insert(last.end(), values.end() - kept, values.end());
    return test::worst(last, numbers(expected("logits")));
  }
};

const std::vector<Adapted> adapted{
    {"gpt2", "hugging_face/tiny", "('c_attn',)", 4},
    {"every", "hugging_face/tiny", "('c_attn', 'c_fc', 'c_proj')", 16},
    {"llama", "llama/nested", "('q_proj', 'v_proj')", 8},
    {"all", "llama/nested", "('down_proj', 'gate_proj', 'k_proj', 'o_proj', 'q_proj', 'up_proj', 'v_proj')", 28},
    {"mistral", "decoders/mistral", "('down_proj', 'q_proj', 'v_proj')", 12},
    {"qwen3", "qwen3", "('gate_proj', 'k_proj', 'o_proj')", 12},
    {"gemma2", "decoders/gemma2", "('down_proj', 'q_proj')", 8},
    {"gemma3_text", "decoders/gemma3", "('o_proj', 'up_proj')", 8},
    {"opt", "decoders/opt", "('output', 'query', 'up')", 12},
    {"last", "llama/nested", "('1.mlp.down_proj', '1.self_attn.o_proj')", 4}};

/// While it lives, the definitions of the tree are the installed ones.
struct ModelsOfTree {
  ModelsOfTree() { setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1); }
  ~ModelsOfTree() { unsetenv("XTAPE_MODELS"); }
  ModelsOfTree(const ModelsOfTree&) = delete;
  ModelsOfTree& operator=(const ModelsOfTree&) = delete;
};

nlohmann::json adapter_config_in(const std::string& folder) {
  return nlohmann::json::parse(std::ifstream(folder + "/adapter_config.json"));
}
}  // namespace

TEST_CASE("adapters of PEFT: logits, in either dtype, without warnings") {
  const ModelsOfTree models;
  for (const Adapted& each : adapted) {
    CAPTURE(each.name);
    const Model model = each.open();
    CHECK(to_string(model.hyper().at("targets")) == each.targets);
    CHECK(model.weights().size() ==
          open_hugging_face(each.base_folder()).weights().size() + static_cast<std::size_t>(each.count));
    CHECK(each.difference(each.open()) < 1e-12);
    CHECK(each.difference(each.open(Dtype::float32)) < 2e-5);
    CHECK(hugging_face_warnings(each.base_folder(), "", each.folder()).empty());
  }
}

TEST_CASE("adapters of PEFT: the gradient of every A and B") {
  const ModelsOfTree models;
  for (const Adapted& each : adapted) {
    CAPTURE(each.name);
    const Model model = each.open();
    Tape tape(Mode::eval);
    const Array tokens = each.expected("tokens");
    const NamedVars inputs = model.inputs(tape, "logits", {{"b", tokens.shape()[0]}, {"t", tokens.shape()[1]}});
    const Var loss = sum(square(model.record(tape, "logits", inputs)[0].value));
    std::vector<std::string> names;
    Vars weights;
    for (const auto& [name, var] : model.weights(tape))
      if (name.ends_with("lora_A") || name.ends_with("lora_B")) {
        names.push_back(name);
        weights.push_back(var);
      }
    CHECK(names.size() == static_cast<std::size_t>(each.count));
    const Vars gradients = grad(loss, weights);
    Player player(tape, gradients);
    player.play({{inputs.at("tokens"), tokens}});
    for (std::size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      CHECK(test::worst(test::weighted_sums(numbers(player.view(gradients[i]))),
                        numbers(each.expected("grad." + names[i]))) < 1e-11);
    }
  }
}

TEST_CASE("adapters of PEFT: written again as they were") {
  const ModelsOfTree models;
  for (const Adapted& each : adapted) {
    CAPTURE(each.name);
    const Folder to;
    save_adapter(each.open(Dtype::float32), to.path(), "base");
    const Store read = load_arrays(each.folder() + "/adapter_model.safetensors"),
                written = load_arrays(to / "adapter_model.safetensors");
    CHECK(written.size() == read.size());
    for (const Store::Entry& entry : written) {
      CAPTURE(entry.name);
      REQUIRE(read.find(entry.name) != nullptr);
      CHECK(entry.value.shape() == read.at(entry.name).shape());
      CHECK(numbers(entry.value) == numbers(read.at(entry.name)));
    }
    const nlohmann::json before = adapter_config_in(each.folder()), after = adapter_config_in(to.path());
    for (const char* key : {"peft_type", "task_type", "r", "fan_in_fan_out", "bias", "lora_dropout"})
      CHECK_MESSAGE(after[key] == before[key], key);
    CHECK(after["base_model_name_or_path"] == "base");
    const double scale = before["use_rslora"] ? 2 : 1;  // of rank 4
    CHECK(after["lora_alpha"].get<double>() == scale * before["lora_alpha"].get<double>());
    CHECK(each.difference(each.open(Dtype::float64, to.path())) < 1e-12);
  }
  const Folder all, last, based;
  for (const Adapted& each : adapted) {  // read back on top of the base
    CAPTURE(each.name);
    save_adapter(each.open(Dtype::float32), based.path(), each.base_folder());
    CHECK(adapter_config_in(based.path())["base_model_name_or_path"] == each.base_folder());
  }
  save_adapter(adapted[3].open(Dtype::float32), all.path(), "base");
  CHECK(adapter_config_in(all.path())["target_modules"] ==
        nlohmann::json({"down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"}));
  save_adapter(adapted.back().open(Dtype::float32), last.path(), "base");
  CHECK(adapter_config_in(last.path())["target_modules"] == nlohmann::json({"1.mlp.down_proj", "1.self_attn.o_proj"}));
}

TEST_CASE("adapters of PEFT: merged into a folder of the base's kind") {
  const ModelsOfTree models;
  for (const Adapted& each : adapted) {
    CAPTURE(each.name);
    const Folder to;
    save_hugging_face(each.open(Dtype::float32), to.path(), each.base_folder());
    ModelOptions options;
    options.dtype = Dtype::float64;
    CHECK(each.difference(open_hugging_face(to.path(), options)) < 1e-6);
  }
}
