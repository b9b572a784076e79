#include <doctest/doctest.h>

#include <filesystem>

#include "source_root.hpp"
#include "xtape/train.hpp"

using namespace xtape;
namespace fs = std::filesystem;

TEST_CASE("every recipe in models/recipes is right, and its definition takes its hyper-parameters") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(source_root() + "/models/recipes")) {
    const std::string path = entry.path().string();
    CAPTURE(path);
    const bool on_text = read_text(path).find("\"text\":") == std::string::npos &&
                         (read_text(path).find("\"kind\": \"text\"") != std::string::npos ||
                          read_text(path).find("\"kind\": \"documents\"") != std::string::npos);
    std::vector<Setting> settings;
    if (on_text) settings.push_back({"data.text", "text.txt"});
    const Recipe recipe = Recipe::load(path, settings);
    CHECK(recipe.name == entry.path().stem().string());
    ModelOptions options;
    options.initialise = false;
    for (const HyperSetting& each : recipe.hyper)
      options.hyper.emplace_back(each.name, each.from_data ? "96" : each.text);
    const Model model = Model::load(recipe.definition, options);
    CHECK(model.parameter_count() > 0);
    ++count;
  }
  CHECK(count >= 6);
}
