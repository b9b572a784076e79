// A recipe.
#include "target.hpp"
#include "xtape/train.hpp"

namespace xtape::fuzz {

void recipe(Input input) {
  const std::string path = folder() + "/recipe.json";
  write(path, input);
  const auto read = accepted([&] { return Recipe::load(path); });
  if (!read) return;
  write(path, read->text);
  const Recipe again = Recipe::load(path);
  require(again.text == read->text, "a recipe that is written and read is the same");
  require(again.batch_size == read->batch_size && again.fit.steps == read->fit.steps &&
              again.trainer.seed == read->trainer.seed && again.keep == read->keep,
          "a recipe that is written and read has the same numbers");
}

}  // namespace xtape::fuzz
