// A folder of low-rank adapters: adapter_config.json and the weights.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "target.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape::fuzz {

namespace {
constexpr const char* adapted_definition = R"json({
  "xtape": 2, "name": "adapted", "hyper": {"width": 2, "rank": 1, "alpha": 1.0, "rate": 0.0, "targets": "()"},
  "blocks": {"line": {
    "hyper": {"adapted": "is_named(targets)"},
    "weights": {"weight": {"shape": ["width", "width"], "init": "normal", "std": 1.0},
                "A": {"shape": ["rank", "width"], "init": "zeros", "when": "adapted"},
                "B": {"shape": ["width", "rank"], "init": "zeros", "when": "adapted"}},
    "inputs": ["x"],
    "result": "x @ transpose(weight) + (alpha / rank * x @ transpose(A) @ transpose(B) if adapted else none)",
    "export": {"weight": "weight + alpha / rank * B @ A if adapted else none"}
  }},
  "model": {
    "modules": {"h": {"block": "line", "repeat": 2}, "last": {"block": "line"}},
    "functions": {"f": {"inputs": {"x": "float [n, width]"}, "result": "last(h(dropout(x, rate)))"}}
  },
  "hugging_face": {
    "model_type": "adapted", "architecture": "Adapted", "hyper": {"width": {"keys": "width", "default": 2}},
    "weights": {"prefix": "model."},
    "adapter": {"hyper": {"r": "rank", "lora_alpha": "alpha", "lora_dropout": "rate", "target_modules": "targets"},
                "weights": {"lora_A": "A", "lora_B": "B"}}
  }
})json";

bool small_numbers(const Model& model) {
  for (const auto& entry : model.weights())
    for (std::int64_t i = 0; i < entry.value.count(); ++i)
      if (!(std::abs(entry.value.as<float>()[i]) < 1e6F)) return false;
  return std::abs(model.hyper().number("alpha")) < 1e6;
}
}  // namespace

void adapter(Input input) {
  static const std::string definition = [] {
    write(folder() + "/adapted.json", adapted_definition);
    save_hugging_face(Model::load(folder() + "/adapted.json"), folder() + "/base");
    return folder() + "/adapted.json";
  }();
  const std::vector<std::string> texts = parts(input, 2);
  const std::string base = folder() + "/base", from = folder() + "/adapter", to = folder() + "/adapter-again";
  std::filesystem::create_directories(from);
  write(from + "/adapter_config.json", texts[0]);
  write(from + "/adapter_model.safetensors", texts[1]);
  const auto open = [&](const std::string& path) {
    return std::make_shared<Model>(open_hugging_face(base, {}, definition, {}, path));
  };
  const auto model = accepted([&] { return open(from); });
  accepted([&] { return hugging_face_warnings(base, definition, from).size(); });
  accepted([&] { return base_of_adapter(from); });
  if (!model || !small_numbers(**model)) return;
  save_adapter(**model, to, "base");
  const auto again = open(to);
  const auto &first = (*model)->weights(), &second = again->weights();
  require(first.size() == second.size(), "adapters that are saved and opened are as many");
  for (std::size_t i = 0; i < first.size(); ++i)
    require(first[i].name == second[i].name && first[i].value.shape() == second[i].value.shape() &&
                std::memcmp(first[i].value.data(), second[i].value.data(), first[i].value.bytes()) == 0,
            "adapters that are saved and opened have the same bits");
}

}  // namespace xtape::fuzz
