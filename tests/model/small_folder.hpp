/// A small definition with its mapping, and a folder of its model.
#pragma once

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

namespace small_folder {

using namespace xtape;
using test::Folder;

using Config = nlohmann::ordered_json;

inline const std::string mapping_text = R"json({
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

inline std::string definition_text(const std::string& entry) {
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

inline Config least() {
  return Config::parse(R"json({"model_type": "small", "sizes": {"width": 3}})json");
}
inline Config config_with(const std::string& path, const Config& value) {
  Config config = least();
  config[Config::json_pointer(path)] = value;
  return config;
}

}  // namespace small_folder
