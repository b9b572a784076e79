/// What a Model holds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "part.hpp"
#include "recent.hpp"
#include "xtape/model.hpp"

namespace xtape {

struct Model::Data {
  Data(std::shared_ptr<const model::Definition> definition, const ModelOptions& options);

  model::World world;
  std::unique_ptr<model::Part> root;
  Hyper hyper;
  std::map<std::string, Signature> signatures;
  std::string definition_text;

  PlayerOptions player_options;
  Recent<std::shared_ptr<PlayableFunction>> players{16};

  /// The function of that name; throws Error with the nearest name.
  const model::Function& function(const std::string& name) const;
};

namespace model {
/// The definition with all it uses inside, and its hyper-parameters resolved.
std::string self_contained(const World& world);
}  // namespace model

}  // namespace xtape
