#include "folder.hpp"

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

}  // namespace xtape::cli
