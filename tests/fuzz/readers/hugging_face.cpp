// A folder of the Hugging Face Hub: config.json, the index of its files, and one file of weights.
#include "xtape/hugging_face.hpp"

#include <cstring>
#include <filesystem>

#include "target.hpp"

namespace xtape::fuzz {

namespace {
constexpr const char* small_definition = R"json({
  "xtape": 2, "name": "small", "hyper": {"width": 2, "tied": true},
  "model": {
    "weights": {"w": {"shape": ["width"], "init": "zeros"},
                "v": {"shape": ["width"], "init": "zeros", "when": "not tied"}},
    "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "x * w + v"}}
  },
  "hugging_face": {
    "model_type": "small", "architecture": "Small",
    "hyper": {"width": {"keys": ["width", "sizes.width"], "default": 2}, "tied": {"keys": "tie", "default": true}},
    "weights": {"prefix": "model.", "skip": ["*.bias"],
                "tied": {"v": {"weight": "w", "hyper": "tied"}}}
  }
})json";
}  // namespace

void hugging_face(Input input) {
  namespace fs = std::filesystem;
  static const std::string path = [] {
    write(folder() + "/small.json", small_definition);
    return folder() + "/small.json";
  }();
  const std::vector<std::string> texts = parts(input, 3);
  const std::string from = folder() + "/from", to = folder() + "/to";
  fs::create_directories(from);
  write(from + "/config.json", texts[0]);
  fs::remove(from + "/model.safetensors.index.json");
  fs::remove(from + "/model.safetensors");
  if (!texts[1].empty()) write(from + "/model.safetensors.index.json", texts[1]);
  write(from + (texts[1].empty() ? "/model.safetensors" : "/one.safetensors"), texts[2]);
  const auto model = accepted([&] { return std::make_shared<Model>(open_hugging_face(from, {}, path)); });
  if (!model) return;
  save_hugging_face(**model, to);
  const Model again = open_hugging_face(to, {}, path);
  const auto &first = (*model)->weights(), &second = again.weights();
  require(first.size() == second.size(), "a folder that is saved and opened has the same weights");
  for (std::size_t i = 0; i < first.size(); ++i)
    require(first[i].name == second[i].name && first[i].value.shape() == second[i].value.shape() &&
                std::memcmp(first[i].value.data(), second[i].value.data(), first[i].value.bytes()) == 0,
            "a folder that is saved and opened has the same bits");
}

}  // namespace xtape::fuzz
