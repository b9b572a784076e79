// Predictions in mode train: means and deviations of samples.
#include <doctest/doctest.h>

#include <cmath>

#include "source_root.hpp"
#include "tiny.hpp"
#include "train/predict/predict.hpp"

namespace predict_samples {

using namespace xtape;
using train::RowPredictor;

namespace {
/// y = 1000 dropout(x) + 10, and a block that normalises x by running statistics: mean 0 and variance 1 as long as
/// nothing has trained it.
const std::string definition = R"json({
  "xtape": 2, "name": "one", "use": ["NORM"],
  "hyper": {"rate": 0.25},
  "model": {
    "modules": {"norm": {"block": "batch_norm", "channels": 2, "epsilon": 0}},
    "functions": {
      "predict": {"inputs": {"x": "float [b, 2]"}, "result": "1000 * dropout(norm(x), rate) + 10"},
      "loss": {"inputs": {"x": "float [b, 2]", "y": "float [b, 2]"}, "result": "mean(square(predict(x) - y))"}
    }
  }
})json";
const std::string recipe = R"json({
  "xtape": 2, "name": "one", "definition": "one.json",
  "data": {"kind": "arrays", "arrays": "table.csv", "inputs": {"x": ["a", "b"], "y": ["c", "d"]}},
  "batch": {"size": 4}, "optimizer": {"kind": "sgd"}, "schedule": {"kind": "constant", "rate": 0.1}, "steps": 1
})json";

Run run_in(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  std::string text = definition;
  text.replace(text.find("NORM"), 4, source_root() + "/models/blocks/norm.json");
  directory.write("one.json", text);
  std::string table = "a,b,c,d\n";
  for (int i = 0; i < 20; ++i) table += "1,2,3,4\n";
  directory.write("table.csv", table);
  return Run::create(Recipe::load(directory.write("recipe.json", recipe), settings), directory / "run");
}

BatchArrays rows_of(const std::vector<std::vector<float>>& numbers) {
  Array x(Dtype::float32, {std::ssize(numbers), 2});
  for (std::size_t i = 0; i < numbers.size(); ++i)
    std::copy(numbers[i].begin(), numbers[i].end(), x.as<float>() + 2 * i);
  return {{"x", x}};
}
}  // namespace

TEST_CASE("samples have the mean and the deviation of what dropout leaves") {
  const tiny::Directory directory;
  Run run = run_in(directory);
  for (const std::int64_t samples : {2, 64, 65, 200}) {
    const RowPredictor predictor(run, {samples, 3});
    const train::Predictions made = predictor.predict(rows_of({{3, 5}, {7, 0}}));
    CHECK(made.names == std::vector<std::string>{"c", "d", "c.std", "d.std"});
    const auto n = static_cast<double>(samples);
    std::vector<double> left;  // in how many samples the number is left, which the mean tells
    for (const auto& [row, column, number] : {std::tuple(0, 0, 3.0), {0, 1, 5.0}, {1, 0, 7.0}, {1, 1, 0.0}}) {
      const double mean = std::stod(made.rows[row][column]), deviation = std::stod(made.rows[row][column + 2]);
      const double each = 1000 * number / 0.75;
      if (number == 0) {
        CHECK(mean == 10);
        CHECK(deviation == 0);
        continue;
      }
      const double k = (mean - 10) * n / each;
      CHECK(k == doctest::Approx(std::round(k)).epsilon(1e-5));
      CHECK(deviation ==
            doctest::Approx(each * std::sqrt(std::round(k) * (n - std::round(k)) / (n * (n - 1)))).epsilon(1e-4));
      left.push_back(std::round(k));
    }
    CHECK(predictor.varies());
    if (samples < 65) continue;
    for (const double k : left) CHECK(std::abs(k / n - 0.75) < 0.25);
    CHECK((left[0] != left[1] || left[1] != left[2]));  // each number has draws of its own
  }
}

TEST_CASE("samples depend on the seed and the row, not on the rows beside it or the threads") {
  const tiny::Directory directory;
  Run run = run_in(directory);
  const auto predicted = [&](std::uint64_t seed, const std::vector<std::vector<std::vector<float>>>& parts) {
    const RowPredictor predictor(run, {30, seed});
    std::vector<std::vector<std::string>> all;
    for (const auto& part : parts)
      for (auto& row : predictor.predict(rows_of(part)).rows) all.push_back(std::move(row));
    return all;
  };
  const auto together = predicted(1, {{{3, 5}, {3, 5}, {2, 1}}});
  CHECK(together == predicted(1, {{{3, 5}}, {{3, 5}, {2, 1}}}));
  CHECK(together[0] != together[1]);
  CHECK(together != predicted(2, {{{3, 5}, {3, 5}, {2, 1}}}));
  const tiny::Directory other;
  Run more = run_in(other, {{"threads", "3"}});
  const RowPredictor predictor(more, {30, 1});
  CHECK(predictor.predict(rows_of({{3, 5}, {3, 5}, {2, 1}})).rows == together);
}

TEST_CASE("without anything random all samples are equal, and fewer than two are an error") {
  const tiny::Directory directory;
  Run run = run_in(directory, {{"hyper.rate", "0"}});
  const RowPredictor predictor(run, {5, 0});
  CHECK(predictor.predict(rows_of({{3, 5}})).rows[0] == std::vector<std::string>{"3010", "5010", "0", "0"});
  CHECK_FALSE(predictor.varies());
  CHECK_THROWS_WITH_AS(RowPredictor(run, {1, 0}), "a deviation needs 2 to 1048576 samples, not 1", Error);
}

}  // namespace predict_samples
