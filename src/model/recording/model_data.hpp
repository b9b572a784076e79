/// The data members of a Model.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/recording/function_cache.hpp"
#include "model/recording/module.hpp"
#include "xtape/model.hpp"

namespace xtape {

struct Model::Data {
  Data(std::shared_ptr<const model::Definition> definition, const ModelOptions& options);

  model::ModelContext context;
  std::unique_ptr<model::Module> root;
  Hyper hyper;
  std::map<std::string, Signature> signatures;
  std::string definition_text;

  FunctionCache<> players;

  /// Returns the function with this name. Throws Error if there is none. The message suggests the nearest name.
  const model::Function& function(const std::string& name) const;
};

namespace model {
/// Returns the definition as one text with all files that it uses and with the values of its hyper-parameters.
std::string self_contained(const ModelContext& context);
}  // namespace model

}  // namespace xtape
