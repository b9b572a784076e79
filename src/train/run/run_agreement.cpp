#include "train/run/run_agreement.hpp"

#include <nlohmann/json.hpp>

#include "ranks/agreement.hpp"
#include "base/threads/instruction_set.hpp"
#include "base/json/json_text.hpp"
#include "kernels/products/blas_core.hpp"

namespace xtape::train {

namespace {
/// Describes the hardware and libraries. Apart from the model, data and recipe, only they affect the bits of results.
std::string processor() {
  return std::string(name_of(instruction_set())) + ", " + blas_description();
}

std::string without_threads(const Recipe& recipe) {
  Json json = JsonText(recipe.text, recipe.name, JsonErrors::definition).root();
  json.erase("threads");
  return json.dump();
}
}  // namespace

void check_agreement(ranks::RankGroup& group, const Recipe& recipe) {
  if (group.size() == 1) return;
  ranks::check_agreement(group, "version of xtape", XTAPE_VERSION);
  ranks::check_agreement(group, "instruction set and BLAS kernels", processor());
  ranks::check_agreement(group, "recipe", without_threads(recipe));
}

void check_agreement(ranks::RankGroup& group, const Texts& texts) {
  if (group.size() > 1) ranks::check_agreement(group, "data", "checksum " + std::to_string(texts.checksum()));
}

}  // namespace xtape::train
