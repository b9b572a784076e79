#include "recipe_model.hpp"

#include "xtape/hugging_face.hpp"

namespace xtape::train {

NamedTexts hyper_of(const Recipe& recipe) {
  NamedTexts hyper;
  for (const HyperSetting& setting : recipe.hyper)
    if (setting.from == HyperSetting::From::text) hyper.emplace_back(setting.name, setting.text);
  return hyper;
}

NamedTexts hyper_of(const Recipe& recipe, const Tokenizers& tokenizers, std::int64_t columns) {
  using From = HyperSetting::From;
  NamedTexts hyper = hyper_of(recipe);
  for (const HyperSetting& setting : recipe.hyper) {
    if (setting.from == From::text) continue;
    const std::int64_t value = setting.from == From::columns             ? columns
                               : setting.from == From::source_vocabulary ? tokenizers.source->size()
                                                                         : tokenizers.target->size();
    hyper.emplace_back(setting.name, std::to_string(value));
  }
  return hyper;
}

Model model_of(const Recipe& recipe, NamedTexts hyper, bool initialise, const std::string& opened_from) {
  ModelOptions options;
  options.seed = recipe.trainer.seed;
  options.initialise = initialise;
  options.hyper = std::move(hyper);
  Model model = opened_from.empty() ? Model::load(recipe.definition, options)
                                    : open_hugging_face(opened_from, options, recipe.definition);
  PlayerOptions playing;
  playing.threads = recipe.trainer.threads;
  playing.seed = recipe.trainer.seed;
  model.set_player_options(16, playing);
  return model;
}

}  // namespace xtape::train
