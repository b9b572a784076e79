#include "folder.hpp"

#include <algorithm>
#include <iostream>

namespace xtape::cli {

void warn_of_folder(const std::string& folder, const std::string& definition) {
  for (const std::string& warning : hugging_face_warnings(folder, definition))
    std::cerr << "warning: " << warning << '\n';
}

Model open_folder(const std::string& folder, const ModelOptions& options) {
  Model model = open_hugging_face(folder, options);
  warn_of_folder(folder);
  return model;
}

Model open_folder(const std::string& folder, const InferenceArguments& inference, std::int64_t threads) {
  const Dtype in_files = stored_weights(folder);
  const Dtype wanted = inference.dtype(in_files);
  ModelOptions options;
  if (wanted == in_files) options.weights = wanted;
  Model model = open_folder(folder, options);
  model.store_weights_as(wanted);
  PlayerOptions playing;
  if (threads > 0) playing.threads = static_cast<int>(threads);
  if (!inference.precision.empty()) playing.precision = precision_named(inference.precision);
  model.set_player_options(16, playing);
  return model;
}

bool reads_source(const Model& model) {
  const std::vector<FunctionInput>& inputs = model.signature("logits").inputs;
  return std::any_of(inputs.begin(), inputs.end(), [](const FunctionInput& each) { return each.name == "source"; });
}

}  // namespace xtape::cli
