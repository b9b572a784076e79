#include "train/run/checkpoint.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include "tiny.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using namespace xtape::train;
namespace fs = std::filesystem;

namespace {
Store store_of(float value, std::int64_t count = 100) {
  Array array(Dtype::float32, {count});
  std::fill_n(array.as<float>(), count, value);
  Store store;
  store.add("x", array);
  return store;
}

std::function<void(const std::string&)> saver_of(float value, std::int64_t count = 100) {
  return [=](const std::string& file) { save_arrays(file, store_of(value, count)); };
}

float stored(const std::string& checkpoint, const std::string& file) {
  const Array array = load_arrays(checkpoint + "/" + file).at("x");
  for (std::int64_t i = 0; i < array.count(); ++i) REQUIRE(array.as<float>()[i] == array.as<float>()[0]);
  return array.as<float>()[0];
}
}  // namespace

TEST_CASE("a checkpoint is written, replaced and listed in order") {
  const tiny::Directory directory;
  for (const std::int64_t step : {9, 100000000, 20})
    write_checkpoint(directory / checkpoint_name(step), store_of(1), saver_of(2), {step, 40, 7});
  const auto found = checkpoints(directory / "");
  REQUIRE(found.size() == 3);
  CHECK(read_state(found[0]).step == 9);
  CHECK(read_state(found[1]).step == 20);
  CHECK(read_state(found[2]).step == 100000000);
  CHECK(read_state(found[0]).cursor == 40);
  CHECK(read_state(found[0]).seed == 7);
  write_checkpoint(found[0], store_of(3), saver_of(4), {9, 41, 7});
  CHECK(stored(found[0], "weights.safetensors") == 3);
  CHECK(stored(found[0], "optimizer.safetensors") == 4);
  CHECK(read_state(found[0]).cursor == 41);
  CHECK(checkpoints(directory / "").size() == 3);
}

TEST_CASE("a directory left by a crash before the rename is not a checkpoint, and is removed") {
  const tiny::Directory directory;
  write_checkpoint(directory / checkpoint_name(5), store_of(1), saver_of(2), {5, 5, 0});
  const std::string half = directory / (checkpoint_name(10) + ".writing");
  fs::create_directories(half);
  std::ofstream(half + "/weights.safetensors") << "cut sh";
  const auto found = checkpoints(directory / "");
  REQUIRE(found.size() == 1);
  CHECK(stored(found[0], "weights.safetensors") == 1);
  write_checkpoint(directory / checkpoint_name(10), store_of(3), saver_of(4), {10, 10, 0});
  CHECK(stored(directory / checkpoint_name(10), "weights.safetensors") == 3);
  fs::create_directories(directory / (checkpoint_name(15) + ".writing"));
  remove_old_checkpoints(directory / "", 1, -1);
  CHECK(checkpoints(directory / "") == std::vector<std::string>{directory / checkpoint_name(10)});
  CHECK(!fs::exists(directory / (checkpoint_name(15) + ".writing")));
}

TEST_CASE("a writer that is killed at any time leaves a complete checkpoint") {
  const tiny::Directory directory;
  const std::string place = directory / "checkpoints";
  fs::create_directory(place);
  write_checkpoint(place + "/" + checkpoint_name(0), store_of(0), saver_of(0), {0, 0, 0});
  for (int round = 0; round < 12; ++round) {
    const pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      // New steps, and one step again: the rename and the exchange.
      for (int i = 1;; ++i) {
        const auto value = static_cast<float>(i);
        write_checkpoint(place + "/" + checkpoint_name(i / 2), store_of(value, 20000), saver_of(value, 20000),
                         {i / 2, static_cast<std::uint64_t>(i), 0});
        remove_old_checkpoints(place, 2, -1);
      }
    }
    usleep(static_cast<useconds_t>(3000 + 2700 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    const auto found = checkpoints(place);
    REQUIRE(!found.empty());
    for (const std::string& checkpoint : found) {
      const auto value = static_cast<float>(read_state(checkpoint).cursor);
      CHECK(stored(checkpoint, "weights.safetensors") == value);
      CHECK(stored(checkpoint, "optimizer.safetensors") == value);
    }
  }
}

TEST_CASE("files that are not checkpoints are errors that name the file") {
  const tiny::Directory directory;
  CHECK_THROWS_AS(read_state(directory / "none"), FileError);
  fs::create_directories(directory / "wrong");
  directory.write("wrong/state.json", "{\"step\": \"x\"}");
  CHECK_THROWS_WITH_AS(read_state(directory / "wrong"), doctest::Contains("is not a checkpoint's state"), FileError);
  CHECK_THROWS_AS(write_checkpoint("/proc/none/at/all", store_of(1), saver_of(1), {}), FileError);
}
