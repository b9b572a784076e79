/// Models of Hugging Face model folders.
#pragma once

#include <string>

#include "run_options.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape::cli {

/// Prints warnings to stderr about entries of the folder's config that are ignored.
void warn_of_folder(const std::string& folder, const std::string& definition = "");

/// Opens the folder's model and prints the warnings.
Model open_folder(const std::string& folder, const ModelOptions& options = {});
/// The same for inference, with `threads` threads if it is above 0.
Model open_folder(const std::string& folder, const InferenceArguments& inference, std::int64_t threads = 0);

/// Whether the model's function `logits` has an input `source`.
bool reads_source(const Model& model);

}  // namespace xtape::cli
