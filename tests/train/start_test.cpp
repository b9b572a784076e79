// Where the weights of a run come from (the key "start").
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "support/error_of.hpp"
#include "tiny.hpp"
#include "xtape/file_block.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using test::error_of;

namespace {
bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// A run of a few updates, with checkpoints of steps 2 and 4.
std::string trained_before(const tiny::Directory& directory, const std::string& name) {
  const std::string path = directory / name;
  Run run = Run::create(tiny::load(directory, {{"steps", "4"}, {"checkpoint_every", "2"}, {"keep", "all"}}), path);
  CHECK(run.train());
  return path;
}

Store weights_of(const std::string& run, const std::string& step) {
  return load_arrays(run + "/checkpoints/" + step + "/weights.safetensors");
}
}  // namespace

TEST_CASE("a run starts with the weights of a chosen checkpoint of another run, and keeps them when that is gone") {
  const tiny::Directory directory;
  const std::string before = trained_before(directory, "before");
  const Store last = weights_of(before, "00000004"), second = weights_of(before, "00000002");
  const auto started = [&](const std::string& name, std::vector<Setting> settings) {
    settings.push_back({"seed", "77"});
    Run run = Run::create(tiny::load(directory, settings), directory / name);
    Store weights;
    for (const Store::Entry& each : run.model().weights()) weights.add(each.name, each.value.clone());
    return weights;
  };
  for (const Store::Entry& each : started("from_last", {{"start.from", before}}))
    CHECK(same(each.value, last.at(each.name)));
  for (const Store::Entry& each :
       started("from_step", {{"start", R"([{"from": ")" + before + R"(", "checkpoint": 2}])"}}))
    CHECK(same(each.value, second.at(each.name)));
  const std::string file = before + "/checkpoints/00000002/weights.safetensors";
  for (const Store::Entry& each : started("from_file", {{"start.from", file}}))
    CHECK(same(each.value, second.at(each.name)));
  for (const Store::Entry& each : started("from_folder", {{"start.from", before + "/checkpoints/00000002"}}))
    CHECK(same(each.value, second.at(each.name)));
  std::filesystem::remove_all(before);
  Run again = Run::open(directory / "from_last");
  for (const Store::Entry& each : again.model().weights()) CHECK(same(each.value, last.at(each.name)));
}

TEST_CASE("a start takes parts under other names, and later sources replace earlier ones") {
  const tiny::Directory directory;
  const std::string before = trained_before(directory, "before");
  const Store last = weights_of(before, "00000004"), second = weights_of(before, "00000002");
  Store renamed;
  for (const Store::Entry& each : second) renamed.add("old/" + each.name, Array(each.value));
  const std::string file = directory / "renamed.safetensors";
  save_arrays(file, renamed);
  Run run = Run::create(
      tiny::load(directory,
                 {{"start", R"([{"from": ")" + before + R"("}, {"from": ")" + file +
                                R"(", "rename": {"old/out.*": "out.*"}, "take": "out.*", "into": "out.*"}])"}}),
      directory / "run");
  for (const Store::Entry& each : run.model().weights())
    CHECK(same(each.value, (each.name.starts_with("out.") ? second : last).at(each.name)));
}

TEST_CASE("a start reads files of other formats with the readers of their endings") {
  const tiny::Directory directory;
  // A format of this test: the file is empty, and all weights are 1 to 256.
  set_weight_reader(".counted", [](const std::string&) {
    Store arrays;
    for (const char* name : {"here.weight", "before.weight", "out.weight"}) {
      Array array(Dtype::float64, {16, 16});
      for (std::int64_t i = 0; i < array.count(); ++i) array.as<double>()[i] = static_cast<double>(i + 1);
      arrays.add(name, array);
    }
    return arrays;
  });
  const std::string file = directory.write("w.counted", "");
  Run run = Run::create(tiny::load(directory, {{"start.from", file}}), directory / "run");
  for (const Store::Entry& each : run.model().weights())
    for (std::int64_t i = 0; i < each.value.count(); ++i) CHECK(each.value.as<float>()[i] == static_cast<float>(i + 1));
  // This program does not register that of ONNX files.
  CHECK(error_of([&] {
          Run::create(tiny::load(directory, {{"start.from", directory.write("w.onnx", "")}}), directory / "other");
        }).find("need the library xtape-onnx") != std::string::npos);
}

TEST_CASE("a wrong start is an error before anything is written") {
  const tiny::Directory directory;
  const std::string before = trained_before(directory, "before");
  const auto error = [&](const std::string& start) {
    const std::string found = error_of([&] {
      Run::create(tiny::load(directory, {{"start", start}}), directory / "run");
    });
    CHECK(!std::filesystem::exists(directory / "run"));
    return found;
  };
  const std::string from = R"({"from": ")" + before + R"(")";
  CHECK(error(R"({"from": "/nowhere"})").find("/nowhere") != std::string::npos);
  CHECK(error(R"({"take": "*"})").find("needs the key 'from'") != std::string::npos);
  CHECK(error(from + R"(, "checkpoint": 3})").find("has no checkpoint of step 3; it has those of steps 2, 4") !=
        std::string::npos);
  CHECK(error(from + R"(, "checkpoint": "average:2"})").find("must be a single checkpoint") != std::string::npos);
  CHECK(error(from + R"(, "into": "outt.*"})").find("no weight of model") != std::string::npos);
  CHECK(error(from + R"(, "into": "*.*"})").find("must be a name, or a pattern with one *") != std::string::npos);
  CHECK(error(from + R"(, "take": "out.*"})").find("missing: ") != std::string::npos);
  std::filesystem::create_directory(directory / "empty");
  CHECK(error(R"({"from": ")" + (directory / "empty") + R"("})").find("has no .safetensors file") != std::string::npos);
}
