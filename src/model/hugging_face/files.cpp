// The files of a folder by their names: which of them are read, and which do not matter.
#include <algorithm>

#include "base/files/durable.hpp"
#include "base/messages/wording.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/config.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/hugging_face/mapping.hpp"

namespace xtape::model {

namespace {
/// Files that never matter: descriptions, licences, pictures, code, states of trainings, the same weights in other
/// formats, and templates of conversations, because prompts are complete texts. A star matches no dot.
const char* const irrelevant_files =
    ".* *.md LICENSE* LICENCE* NOTICE* Notice* USE_POLICY* *.png *.jpg *.jpeg *.gif *.svg *.webp *.pdf *.py *.ipynb "
    "*.log all_results.json eval_results.json train_results.json trainer_state.json *.bin *.bin.index.json *.pt *.pth "
    "*.ckpt *.h5 *.h5.index.json *.msgpack *.msgpack.index.json *.ot *.onnx *.onnx_data *.gguf chat_template.jinja "
    "chat_template.json";

/// Returns the regular files of a folder that are neither `read` nor irrelevant, in alphabetical order.
std::vector<std::string> others(const std::string& folder, const std::vector<std::string>& read) {
  std::vector<std::string> names = xtape::names_in(folder);
  const std::vector<std::string> irrelevant = words_in(irrelevant_files);
  const auto known = [&](const std::string& name) {
    return contains(read, name) || matches_any(name, irrelevant) || !is_plain_file(path_in(folder, name));
  };
  names.erase(std::remove_if(names.begin(), names.end(), known), names.end());
  std::ranges::sort(names);
  return names;
}
}  // namespace

const std::vector<std::string>& side_files() {
  static const std::vector<std::string> names = words_in(
      "tokenizer.json tokenizer.model spiece.model vocab.json merges.txt vocab.txt tokenizer_config.json "
      "added_tokens.json special_tokens_map.json generation_config.json preprocessor_config.json");
  return names;
}

std::vector<std::string> unread_files(const std::string& folder) {
  std::vector<std::string> read = side_files();
  read.emplace_back(config_file);
  if (path_exists(path_in(folder, adapter_config_file)))  // there is a warning of its own for adapters
    read.insert(read.end(), {adapter_config_file, adapter_weights_file});
  if (has_weights(folder))
    for (const std::string& name : weight_file_names(folder)) read.push_back(name);
  return others(folder, read);
}

std::vector<std::string> unread_adapter_files(const std::string& folder) {
  return others(folder, {adapter_config_file, adapter_weights_file});
}

}  // namespace xtape::model
