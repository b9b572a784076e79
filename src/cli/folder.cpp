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

bool reads_source(const Model& model) {
  const std::vector<FunctionInput>& inputs = model.signature("logits").inputs;
  return std::any_of(inputs.begin(), inputs.end(), [](const FunctionInput& each) { return each.name == "source"; });
}

}  // namespace xtape::cli
