/// Models of folders as the Hugging Face Hub has them.
#pragma once

#include <string>

#include "xtape/hugging_face.hpp"

namespace xtape::cli {

/// Says on the standard error what opening the folder passes over.
void warn_of_folder(const std::string& folder, const std::string& definition = "");

/// Opens the folder's model, and warns.
Model open_folder(const std::string& folder, const ModelOptions& options = {});

/// Whether the model's logits are of a source, too.
bool reads_source(const Model& model);

}  // namespace xtape::cli
