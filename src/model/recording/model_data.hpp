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
/// While it lives, models that this thread makes initialise only the weights that match one of the patterns. The others
/// are read from files, and would otherwise take the memory of floats first.
class InitialisedAlone {
 public:
  explicit InitialisedAlone(const std::vector<std::string>& patterns);
  InitialisedAlone(const InitialisedAlone&) = delete;
  InitialisedAlone& operator=(const InitialisedAlone&) = delete;
  ~InitialisedAlone();
  static bool includes(const std::string& weight);
};

/// Returns the definition as one text with all files that it uses and with the values of its hyper-parameters.
std::string self_contained(const ModelContext& context);
}  // namespace model

}  // namespace xtape
