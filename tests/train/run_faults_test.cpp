// Faults of runs: two processes that train one, broken checkpoints, removed folders, interruptions.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/system/durable.hpp"
#include "run_files.hpp"
#include "tiny.hpp"
#include "train/run/metrics.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
namespace fs = std::filesystem;

namespace {
Trainer::Callbacks stopped_at(std::int64_t step, Run& run) {
  Trainer::Callbacks callbacks;
  callbacks.stop = [step, &run] { return run.trainer().step() == step; };
  return callbacks;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A run with checkpoints of steps 5, 10 and 12.
std::string trained(const tiny::Directory& directory, const std::string& name = "run") {
  Run run = Run::create(tiny::load(directory, {{"keep", "\"all\""}}), directory / name);
  REQUIRE(run.train());
  REQUIRE(names(directory / name) == std::vector<std::string>{"00000005", "00000010", "00000012"});
  return directory / name;
}

void cut(const std::string& file) {
  fs::resize_file(file, fs::file_size(file) / 2);
}

void write(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}
}  // namespace

TEST_CASE("one process at a time trains a run, and the error says which") {
  const tiny::Directory directory;
  Run run = Run::create(tiny::load(directory), directory / "run");
  run.trainer();
  Run other = Run::open(directory / "run");  // reading needs no lock
  CHECK(other.evaluate().tokens > 0);
  const std::string error = error_of([&] { other.trainer(); });
  CHECK(error.find(directory / "run" + " is in use by process " + std::to_string(getpid()) + " on ") == 0);
  CHECK(error.find(" since 20") != std::string::npos);
  CHECK(error.find(": ") != std::string::npos);
  CHECK(error_of([&] { Run::resume(directory / "run"); }) == error);
  CHECK(run.train());
  CHECK(other.trainer().step() == 12);  // the lock was released after the training
}

TEST_CASE("a lock ends with its process, and a lock file that is left over does not count") {
  const tiny::Directory directory;
  Run::create(tiny::load(directory), directory / "run");
  write(directory / "run/lock", "process 1 on elsewhere since 2001-01-01 00:00:00: xtape train\n");
  CHECK(Run::resume(directory / "run").trainer().step() == 0);
}

TEST_CASE("a trainer is an error if another one has trained the run further") {
  const tiny::Directory directory;
  Run run = Run::create(tiny::load(directory), directory / "run");
  CHECK(!run.train(stopped_at(3, run)));
  CHECK(Run::resume(directory / "run").train());
  CHECK_THROWS_WITH_AS(run.train(), doctest::Contains("has been trained on meanwhile, to step 12"), FileError);
}

TEST_CASE("creating a run starts again after it was cut off") {
  const tiny::Directory directory;
  fs::create_directories(directory / "run.writing/checkpoints");
  write(directory / "run.writing/definition.json", "{cut sh");
  CHECK_THROWS_WITH_AS(Run::create(tiny::load(directory), directory / "run"),
                       doctest::Contains("run.writing is needed to create the run"), FileError);  // maybe a user's
  write(directory / "run.writing/lock", "");  // the first file of a new run
  Run run = Run::create(tiny::load(directory), directory / "run/");
  CHECK(run.directory() == directory / "run");
  CHECK(!fs::exists(directory / "run.writing"));
  CHECK(run.train());
}

TEST_CASE("checkpoints that cannot be listed are an error, and do not start the run again") {
  const tiny::Directory directory;
  const std::string run = trained(directory);
  fs::rename(run + "/checkpoints", run + "/away");
  const std::string error = "cannot list '" + run + "/checkpoints': ";
  CHECK_THROWS_WITH_AS(Run::open(run), doctest::Contains(error.c_str()), FileError);
  write(run + "/checkpoints", "a file");
  CHECK_THROWS_WITH_AS(Run::resume(run), doctest::Contains(error.c_str()), FileError);
}

TEST_CASE("an impossible state is an error with file, key and value") {
  const tiny::Directory directory;
  const std::string good = R"({"xtape": 1, "step": 5, "cursor": 5, "seed": 4, "evaluated": 5, "evaluations_since": 0,
"best_step": 5, "best": 2.5})";
  const auto state_with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    directory.write("state.json", text);
    return error_of([&] { train::read_state(directory / ""); });
  };
  CHECK(state_with("\"seed\": 4", "\"seed\": 18446744073709551615") == "no error");
  const std::pair<const char*, const char*> wrong[] = {
      {"\"step\": 5", "\"step\": -1"},          {"\"step\": 5", "\"step\": 4"},
      {"\"step\": 5", "\"step\": 1e3"},         {"\"step\": 5", "\"step\": 9223372036854775807"},
      {"\"cursor\": 5", "\"cursor\": -5"},      {"\"cursor\": 5", "\"cursor\": 18446744073709551615"},
      {"\"seed\": 4", "\"seed\": -4"},          {"\"seed\": 4", "\"seed\": 4.5"},
      {"\"best_step\": 5", "\"best_step\": 6"}, {"\"best\": 2.5", "\"best\": null"},
      {"\"best\": 2.5", "\"best\": 1e999"},     {"\"best\": 2.5", "\"worst\": 1"},
      {"\"evaluated\": 5", "\"evaluated\": 9"}, {"\"evaluations_since\": 0", "\"evaluations_since\": -1"},
      {"\"xtape\": 1", "\"xtape\": 2"},         {"\"step\": 5, ", ""}};
  for (const auto& each : wrong) {
    const auto& from = each.first;
    const auto& to = each.second;
    CAPTURE(to);
    const std::string error = state_with(from, to);
    CHECK(error.find("state.json is not a checkpoint's state") != std::string::npos);
    // The value under the caret, or the key that is missing.
    const std::string named = *to == '\0' ? "\"step\"" : std::string(to) == "\"worst\": 1" ? "\"best\"" : "^";
    CHECK(error.find(named) != std::string::npos);
  }
}

TEST_CASE("the error for a broken last checkpoint names the one before; resuming from that sets the broken one aside") {
  const tiny::Directory directory;
  const std::string whole = trained(directory);
  const auto change = [](const std::string& last, const std::string& name, const auto& write_to) {
    Store state = load_arrays(last + "/optimizer.safetensors");
    Array array(state.at(name));
    write_to(array);
    save_arrays(last + "/optimizer.safetensors", state);
  };
  const auto negative = [](Array& array) { array.as<float>()[1] = -1; };
  const auto not_a_number = [](Array& array) { array.as<float>()[0] = std::nanf(""); };
  const auto too_many = [](Array& array) { *array.as<std::int64_t>() = INT64_MAX; };
  std::string moment;  // the first second moment
  for (const Store::Entry& each : load_arrays(whole + "/checkpoints/00000012/optimizer.safetensors"))
    if (moment.empty() && each.name.starts_with("second.")) moment = each.name;
  const std::pair<const char*, std::function<void(const std::string&)>> breakages[] = {
      {"negative", [&](const std::string& last) { change(last, moment, negative); }},
      {"nan", [&](const std::string& last) { change(last, moment, not_a_number); }},
      {"updates", [&](const std::string& last) { change(last, "updates", too_many); }},
      {"weights", [](const std::string& last) { cut(last + "/weights.safetensors"); }},
      {"optimizer", [](const std::string& last) { cut(last + "/optimizer.safetensors"); }},
      {"missing", [](const std::string& last) { fs::remove(last + "/optimizer.safetensors"); }},
      {"state", [](const std::string& last) { write(last + "/state.json", "{\"xtape\": 1, \"step\": -3}"); }}};
  for (const auto& each : breakages) {
    const auto& name = each.first;
    const auto& break_it = each.second;
    CAPTURE(name);
    const std::string run = directory / name;
    fs::copy(whole, run, fs::copy_options::recursive);
    break_it(run + "/checkpoints/00000012");
    const std::string error = error_of([&] { Run::resume(run).trainer(); });
    CHECK(error.find(run + "/checkpoints/00000012") != std::string::npos);
    CHECK(error.find("the checkpoint of step 10 is intact: --checkpoint 10 loads it") != std::string::npos);
    if (name == std::string("negative"))
      CHECK(error.find("'" + moment + "' has an element that is negative or NaN, number 1") != std::string::npos);
    if (name == std::string("updates")) CHECK(error.find("'updates' is 9223372036854775807") != std::string::npos);
    {
      Run again = Run::resume(run, {}, CheckpointChoice::parse("10"));
      CHECK(again.trainer().step() == 10);
      CHECK(fs::exists(run + "/checkpoints/00000012.set-aside"));
      CHECK(again.train());
    }
    CHECK(same_bits(run + "/checkpoints/00000012", whole + "/checkpoints/00000012"));
    CHECK(metrics(run) == metrics(whole));
  }
}

TEST_CASE("any checkpoint can be chosen by its step; training cannot continue from a missing one or an average") {
  const tiny::Directory directory;
  const std::string run = trained(directory);
  CHECK(Run::open(run, {}, CheckpointChoice::parse("5")).evaluate().step == 5);
  CHECK_THROWS_WITH_AS(Run::resume(run, {}, CheckpointChoice::parse("6")),
                       doctest::Contains("has no checkpoint of step 6; it has those of steps 5, 10, 12"), FileError);
  CHECK_THROWS_WITH_AS(Run::resume(run, {}, CheckpointChoice::parse("average:2")), doctest::Contains("average"), Error);
  CHECK(names(run).size() == 3);
}

TEST_CASE("a run that is deleted or moved while it is trained ends with an error") {
  for (const bool deleted : {true, false}) {
    const tiny::Directory directory;
    Run run = Run::create(tiny::load(directory), directory / "run");
    Trainer::Callbacks callbacks;
    callbacks.step = [&](const StepReport& report) {
      if (report.step == 7 && deleted) fs::remove_all(directory / "run");
      if (report.step == 7 && !deleted) fs::rename(directory / "run", directory / "moved");
    };
    CHECK_THROWS_WITH_AS(run.train(callbacks), doctest::Contains("deleted meanwhile"), FileError);
    CHECK(!fs::exists(directory / "run"));  // it is not created again
    if (!deleted) CHECK(Run::resume(directory / "moved").train());
  }
}

TEST_CASE("an interruption in an update undoes the update; an interrupted evaluation is made later") {
  const tiny::Directory directory;
  const std::vector<Setting> settings = {{"batch", R"({"size": 8, "accumulate": 3})"}};
  Run whole = Run::create(tiny::load(directory, settings), directory / "whole");
  REQUIRE(whole.train());
  // Counts the calls of the callback, then interrupts at each of them.
  int asked = 0;
  {
    Run counted = Run::create(tiny::load(directory, settings), directory / "counted");
    Trainer::Callbacks callbacks;
    callbacks.interrupt = [&] { return ++asked < 0; };
    REQUIRE(counted.train(callbacks));
  }
  CHECK(asked > 12 * 3 + 3 * 3);  // micro-batches, and batches of three evaluations
  for (int at = 1; at <= asked; at += 3) {
    CAPTURE(at);
    const std::string place = directory / ("run" + std::to_string(at));
    int count = 0;
    {
      Run run = Run::create(tiny::load(directory, settings), place);
      Trainer::Callbacks callbacks;
      callbacks.interrupt = [&] { return ++count == at; };
      CHECK(!run.train(callbacks));
      CHECK(count == at);  // at once
    }
    CHECK(Run::resume(place).train());
    CHECK(metrics(place) == metrics(directory / "whole"));
    CHECK(same_bits(place + "/checkpoints/00000012", directory / "whole/checkpoints/00000012"));
  }
}

TEST_CASE("readers try again if a training replaces the checkpoint that they read") {
  const tiny::Directory directory;
  Run run = Run::create(tiny::load(directory, {{"keep", "1"}, {"checkpoint_every", "1"}, {"evaluate_every", "0"}}),
                        directory / "run");
  REQUIRE(!run.train(stopped_at(1, run)));  // the first checkpoint
  std::atomic<bool> over = false;
  Trainer::Callbacks callbacks;
  callbacks.stop = [&] { return over.load(); };
  std::thread reader([&] {
    std::string error = "no error";
    for (int i = 0; i < 60 && error == "no error"; ++i)
      error = error_of(
          [&] { Run::open(directory / "run", {}, CheckpointChoice::parse(i % 2 == 0 ? "last" : "average:1")); });
    over = true;
    CHECK(error == "no error");
  });
  while (!over) {  // one training after another
    run.train(callbacks);
    if (!over) run = Run::resume(directory / "run", {{"steps", std::to_string(run.trainer().step() + 20)}});
  }
  reader.join();
}

TEST_CASE("metrics: an evaluation that the checkpoint does not include is measured again, and not listed twice") {
  const tiny::Directory directory;
  const std::string lines = "{\"step\":1,\"loss\":2.0}\n{\"step\":1,\"validation_loss\":3.0}\n{\"step\":2,\"lo";
  const auto left = [&](std::int64_t step, std::int64_t evaluated) {
    const std::string path = directory.write("metrics.jsonl", lines);
    train::Metrics metrics(path, step, evaluated);
    return train::read_metrics(path).size();
  };
  CHECK(left(1, 1) == 2);
  CHECK(left(1, -1) == 1);
  CHECK(left(0, -1) == 0);
  CHECK(left(2, 2) == 2);  // the line that is cut off is always removed
}

TEST_CASE("an appended line is complete or absent, and a deleted file is an error") {
  const tiny::Directory directory;
  const std::string path = directory / "lines";
  AppendedFile file(path);
  file.write("one\n");
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 6;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { file.write("two\n"); });
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(error.find("cannot write '" + path + "': File too large") == 0);
  CHECK(read_text(path) == "one\n");
  file.write("three\n");
  CHECK(read_text(path) == "one\nthree\n");
  fs::remove(path);
  CHECK_THROWS_WITH_AS(file.write("four\n"), doctest::Contains("deleted meanwhile"), FileError);
}
