/// The command-line options for a definition and its hyper-parameters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "xtape/model.hpp"

namespace xtape::cli {

struct DefinitionOptions {
  std::string definition;
  std::vector<std::string> set;  ///< "n_layer=2" or "hyper.n_layer=2".
  std::string dtype = "float32";
  std::uint64_t seed = 0;
};

/// Adds DEFINITION, --set and --dtype. `also` is appended to the help text of DEFINITION.
void add_definition(CLI::App& command, DefinitionOptions& arguments, const std::string& also);

/// Loads the model that the options specify. For a run, loads the weights of its last checkpoint if there is one. If
/// `initialise` is false, the weights are zero. Throws WrongInput, DefinitionError or FileError.
Model load_model(const DefinitionOptions& arguments, bool initialise);
ModelOptions model_options(const DefinitionOptions& arguments, bool initialise);

/// Returns the file of a recipe. `name` is its path, or a name as for `xtape train`: "shakespeare_char". Returns an
/// empty text for anything else.
std::string recipe_file(const std::string& name);

/// Parses sizes such as "b=2,t=8". Throws WrongInput if the text is not of this form.
NamedSizes sizes_of(const std::string& text);

/// Formats 124439808 as "124,439,808".
std::string grouped(std::int64_t number);

}  // namespace xtape::cli
