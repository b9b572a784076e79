// Cross-validation: the keys folds and fold of data with rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "support/error_of.hpp"
#include "tiny.hpp"
#include "train/data/data_kind.hpp"
#include "xtape/safetensors.hpp"

namespace fold_runs {

using namespace xtape;
using test::error_of;

namespace {
constexpr int rows = 11;
/// The sizes that scikit-learn's KFold gives 11 rows in 3 folds: 4, 4, 3.
const std::vector<std::vector<int>> of_fold = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10}};

/// A kind of data whose rows can be told apart, and the place that errors give row `i`.
struct Kind {
  std::string name, data, array;
  std::string place;  // before the number of the row
  std::function<int(const Array&, std::int64_t)> number;
};

int first_number(const Array& array, std::int64_t row) {
  const std::int64_t width = array.count() / array.shape()[0];
  return static_cast<int>(array.dtype() == Dtype::int64 ? static_cast<double>(array.as<std::int64_t>()[row * width])
                                                        : std::lround(array.as<float>()[row * width]));
}

std::vector<Kind> kinds(const tiny::Directory& directory) {
  std::string csv = "y\n", table;
  Array images(Dtype::int32, {rows, 2, 2}), labels(Dtype::int32, {rows});
  for (int i = 0; i < rows; ++i) {
    csv += std::to_string(i) + "\n";
    table += "word\t" + std::to_string(i) + "\n";
    labels.as<std::int32_t>()[i] = i;
    std::fill_n(images.as<std::int32_t>() + 4 * i, 4, i);
  }
  save_arrays(directory / "i.safetensors", {{"images", images}, {"labels", labels}});
  const auto number = [](const Array& array, std::int64_t row) { return first_number(array, row); };
  return {
      {"arrays", R"({"kind": "arrays", "arrays": ")" + directory.write("a.csv", csv) + R"(", "inputs": {"y": "y"}})",
       "y", "row ", number},
      {"images", R"({"kind": "images", "images": ")" + directory / "i.safetensors" + R"("})", "label", "image ",
       number},
      {"table",
       R"({"kind": "table", "columns": {"a": "text", "b": "number"}, "table": ")" + directory.write("t.tsv", table) +
           R"("})",
       "b", "line ", number}};
}

Recipe recipe_of(const tiny::Directory& directory, const std::string& data, const std::vector<Setting>& settings) {
  nlohmann::json json = nlohmann::json::parse(tiny::recipe);
  json["data"] = nlohmann::json::parse(data);
  json["batch"] = {{"size", 2}};
  json.erase("measure");
  json.erase("hyper");
  return Recipe::load(directory.write("recipe.json", json.dump()), settings);
}
}  // namespace

TEST_CASE("each row validates in one fold and trains in the others, and errors name its place in the file") {
  const tiny::Directory directory;
  for (const Kind& kind : kinds(directory))
    for (int fold = 0; fold < 3; ++fold) {
      CAPTURE(kind.name);
      CAPTURE(fold);
      const Recipe recipe =
          recipe_of(directory, kind.data, {{"data.folds", "3"}, {"data.fold", std::to_string(fold + 1)}});
      const train::DataSplits splits(recipe);
      const auto batches = splits.batches(recipe, splits.make_tokenizers(recipe));
      std::vector<int> validating, training;
      BatchArrays batch = batches->blank();
      for (std::int64_t index = 0; index < batches->validation_batches(); ++index) {
        batches->validation(index, batch);
        const Array& array = batch.at(kind.array);
        for (std::int64_t row = 0; row < array.shape()[0]; ++row) validating.push_back(kind.number(array, row));
      }
      for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(batches->epoch_batches()); ++index) {
        batches->training(index, batch);
        const Array& array = batch.at(kind.array);
        for (std::int64_t row = 0; row < array.shape()[0]; ++row) {
          training.push_back(kind.number(array, row));
          const std::string place = batches->training_place(index, kind.array, row);
          CHECK(place.ends_with(kind.place + std::to_string(training.back() + 1)));
        }
      }
      std::ranges::sort(validating);
      std::ranges::sort(training);
      CHECK(validating == of_fold[static_cast<std::size_t>(fold)]);
      std::vector<int> others;
      for (int i = 0; i < rows; ++i)
        if (std::ranges::count(of_fold[static_cast<std::size_t>(fold)], i) == 0) others.push_back(i);
      CHECK(training == others);
    }
}

TEST_CASE("folds exclude other ways to choose the rows that validate") {
  const tiny::Directory directory;
  const std::string data = kinds(directory)[0].data;
  const auto refused = [&](const std::vector<Setting>& settings) {
    return error_of([&] { train::DataSplits(recipe_of(directory, data, settings)); });
  };
  CHECK(refused({{"data.folds", "3"}}).empty());
  CHECK(refused({{"data.folds", "12"}}).find("'data.folds' is 12, but there are only 11 rows") != std::string::npos);
  CHECK(refused({{"data.folds", "1"}}).find("must be a whole number from 2") != std::string::npos);
  CHECK(refused({{"data.folds", "3"}, {"data.fold", "4"}}).find("must be at most 'folds', 3") != std::string::npos);
  CHECK(refused({{"data.fold", "2"}}).find("'data.fold' needs 'folds'") != std::string::npos);
  CHECK(refused({{"data.folds", "3"}, {"data.split", "0.5"}}).find("exclude each other") != std::string::npos);
  CHECK(refused({{"data.folds", "3"}, {"data.held_out", "2"}}).find("exclude each other") != std::string::npos);
  CHECK(refused({{"data.folds", "3"}, {"data.validation_arrays", directory / "a.csv"}}).find("divides the training") !=
        std::string::npos);
}

TEST_CASE("a validation set whose rows do not fit the training is refused before it") {
  const tiny::Directory directory;
  for (const auto& [name, side] : {std::pair<std::string, std::int64_t>("train", 2), {"other", 3}})
    save_arrays(directory / name + ".safetensors",
                {{"images", Array(Dtype::int32, {4, side, side})}, {"labels", Array(Dtype::int32, {4})}});
  const std::string data = R"({"kind": "images", "images": ")" + directory / "train.safetensors" +
                           R"(", "validation": {"other": ")" + directory / "other.safetensors" + R"("}})";
  const Recipe recipe = recipe_of(directory, data, {});
  const train::DataSplits splits(recipe);
  const std::string error = error_of([&] { splits.sets(recipe, {}); });
  CAPTURE(error);
  CHECK(error.find("the validation set 'other'") != std::string::npos);
}

}  // namespace fold_runs
