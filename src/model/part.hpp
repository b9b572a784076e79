/// A model's parts: blocks with their parameters resolved and their weights in the store.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "definition.hpp"
#include "initialise.hpp"
#include "value.hpp"
#include "xtape/op.hpp"

namespace xtape::model {

/// What all parts of a model share.
struct World {
  std::shared_ptr<const Definition> definition;
  const OpTable* ops = nullptr;
  Dtype dtype = Dtype::float32;
  std::uint64_t seed = 0;
  bool initialise = true;
  std::int64_t max_steps = 0;
  std::map<const Definition*, Values> hyper;  ///< Resolved, by file.
  Store store;
};

struct Weight {
  const WeightSpec* spec = nullptr;
  std::string path;  ///< Its name in the store; empty where it is left out.
  Shape shape;
  Initialiser initialiser;
};

/// A part under one name of its parent: one instance, several (repeat), or none (when is false).
struct PartList {
  const PartSpec* spec = nullptr;
  bool repeated = false;
  std::vector<std::unique_ptr<Part>> items;
};

/// A part that a block's user gives it: described where the user stands, with the names that hold there.
struct GivenPart {
  const PartSpec* spec = nullptr;
  const Part* giver = nullptr;
  Values locals;
};

struct Part {
  std::string path;  ///< "h.0.attn"; "" for the model itself.
  const Block* block = nullptr;
  Values parameters;
  std::vector<Weight> weights;
  std::vector<PartList> parts;
  std::map<std::string, GivenPart> given;
  std::shared_ptr<const Scope> scope;

  const Weight* find_weight(const std::string& name) const;
  const PartList* find_part(const std::string& name) const;
};

/// Resolves the hyper-parameters of `world.definition` and of all files that it uses. Overrides concern the first only.
/// Throws DefinitionError.
void resolve_hyper(World& world, const std::vector<std::pair<std::string, std::string>>& overrides);

/// Makes all parts of the model, and their weights in the store. Throws DefinitionError, also where a weight is never
/// used.
std::unique_ptr<Part> build_parts(World& world);

}  // namespace xtape::model
