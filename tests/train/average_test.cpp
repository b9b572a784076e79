// Means of the weights of several checkpoints and runs.
#include <doctest/doctest.h>

#include <filesystem>

#include "run_files.hpp"
#include "support/error_of.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

namespace average_runs {

using namespace xtape;
using test::error_of;

namespace {
std::string weights_of(const std::string& run, const std::string& step) {
  return run + "/checkpoints/" + step + "/weights.safetensors";
}

Store mean_of(const std::vector<std::string>& files) {
  Store means;
  train::for_each_mean(files, [&](const std::string& name, Array mean) { means.add(name, mean); });
  return means;
}

Array of(std::initializer_list<float> elements) {
  Array array(Dtype::float32, {static_cast<std::int64_t>(elements.size())});
  std::copy(elements.begin(), elements.end(), array.as<float>());
  return array;
}
}  // namespace

TEST_CASE("means are those of each element, and of a run's last checkpoints") {
  const tiny::Directory directory;
  Run run = Run::create(tiny::load(directory, {{"keep", "all"}}), directory / "run");
  CHECK(run.train());
  const std::vector<std::string> files = {weights_of(directory / "run", "00000005"),
                                          weights_of(directory / "run", "00000010"),
                                          weights_of(directory / "run", "00000012")};
  const Store a = load_arrays(files[0]), b = load_arrays(files[1]), c = load_arrays(files[2]), mean = mean_of(files);
  Run averaged = Run::open(directory / "run", {}, CheckpointChoice::parse("average:3"));
  REQUIRE(mean.size() == a.size());
  for (const auto& [name, array] : mean)
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const double sum =
          static_cast<double>(a.at(name).as<float>()[i]) + b.at(name).as<float>()[i] + c.at(name).as<float>()[i];
      CHECK(array.as<float>()[i] == static_cast<float>(sum / 3));
      CHECK(averaged.model().weights().at(name).as<float>()[i] == array.as<float>()[i]);
    }
}

TEST_CASE("the mean of several runs is a run, which can be used but not trained") {
  const tiny::Directory directory;
  std::vector<std::string> files;
  for (const std::string rate : {"0.05", "0.02"}) {
    const std::string path = directory / rate;
    CHECK(Run::create(tiny::load(directory, {{"schedule.rate", rate}}), path).train());
    files.push_back(weights_of(path, "00000012"));
  }
  train::write_mean_run(files, directory / "0.02", 12, directory / "soup");
  Run soup = Run::open(directory / "soup");
  for (const auto& [name, array] : mean_of(files))
    for (std::int64_t i = 0; i < array.count(); ++i)
      CHECK(soup.model().weights().at(name).as<float>()[i] == array.as<float>()[i]);
  CHECK(soup.evaluate().step == 12);
  CHECK(!std::filesystem::exists(directory / "soup/metrics.jsonl"));
  const std::string error = error_of([&] { Run::resume(directory / "soup").trainer(); });
  CHECK(error.find("has no optimizer.safetensors: it may be an average") != std::string::npos);
}

TEST_CASE("only weights of one model have a mean") {
  const tiny::Directory directory;
  const auto file = [&](const std::string& name, const Store& arrays) {
    save_arrays(directory / name, arrays);
    return directory / name;
  };
  Array numbers(Dtype::int64, {1}), others(Dtype::int64, {1});
  numbers.as<std::int64_t>()[0] = 1;
  others.as<std::int64_t>()[0] = 2;
  const std::string first = file("first", {{"w", of({1, 2})}, {"n", numbers}});
  const auto tells = [&](const Store& arrays, const std::string& part) {
    const std::string second = file("second", arrays), error = error_of([&] { mean_of({first, second}); });
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  tells({{"w", of({1, 2})}}, "second has no array 'n', which " + first + " has");
  tells({{"w", of({1, 2})}, {"n", numbers}, {"v", of({1})}}, "first has no array 'v'");
  tells({{"w", of({1, 2, 3})}, {"n", numbers}},
        "'w' is float32 (3,) in " + directory / "second" + ", and float32 (2,)");
  tells({{"w", of({1, 2})}, {"n", others}}, "'n' is int64, and differs");
  const Store mean = mean_of({first, file("third", {{"n", numbers}, {"w", of({3, 5})}})});
  CHECK(mean.at("w").as<float>()[0] == 2);
  CHECK(mean.at("w").as<float>()[1] == 3.5F);
  CHECK(mean.at("n").as<std::int64_t>()[0] == 1);
}

}  // namespace average_runs
