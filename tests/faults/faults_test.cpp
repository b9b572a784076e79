// A training that is killed at any of its file operations resumes to the same bits. A training in which a file
// operation fails ends with an error, and then also resumes to the same bits.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstring>

#include "../train/run_files.hpp"
#include "../train/tiny.hpp"
#include "base/system/durable.hpp"
#include "operations.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using faults::Fault;
namespace fs = std::filesystem;

namespace {

/// The outcome of a child process.
struct Ended {
  bool killed = false;
  int code = -1;  ///< 0: the work is done; 1: an xtape error; 2: another exception.
  std::string error, warnings;
};

/// Makes the training keep its warnings in the report.
Trainer::Callbacks with_warnings() {
  Trainer::Callbacks callbacks;
  callbacks.warning = [](const std::string& sentence) {
    char* kept = faults::report().warnings;
    std::strncat(kept, (sentence + "\n").c_str(), sizeof faults::report().warnings - std::strlen(kept) - 1);
  };
  return callbacks;
}

/// Does `work` in a child process, in which operation number `at` below `root` fails.
template <class Work>
Ended in_child(const std::string& root, Fault fault, int at, const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int code = 0;
    const auto tell = [&](const char* what, int its_code) {
      std::strncpy(faults::report().error, what, sizeof faults::report().error - 1);
      code = its_code;
    };
    faults::begin(root, fault, at);
    try {
      work();
    } catch (const Error& error) {
      tell(error.what(), 1);
    } catch (const std::exception& error) {
      tell(error.what(), 2);
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Ended ended;
  ended.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  ended.error = faults::report().error;
  ended.warnings = faults::report().warnings;
  return ended;
}

/// A folder with a recipe and its training runs.
class Trainings {
 public:
  Trainings() {
    in_.write("tiny.json", tiny::definition);
    in_.write("sums.txt", tiny::sums_text());
    in_.write("recipe.json", tiny::recipe);
  }
  std::string root() const { return in_ / "runs"; }
  std::string run() const { return in_ / "runs/run"; }

  /// Resumes the run, or begins it.
  void train() const {
    if (path_exists(run() + "/recipe.json")) {
      Run::resume(run()).train(with_warnings());
    } else {
      Run::create(recipe(), run()).train(with_warnings());
    }
  }
  Recipe recipe() const { return Recipe::load(in_ / "recipe.json", settings); }
  /// Resets the folder to the contents of `before`; to nothing if `before` is empty.
  void restore(const std::string& before) const {
    fs::remove_all(root());
    if (!before.empty()) fs::copy(before, root(), fs::copy_options::recursive);
  }
  std::string keep_as(const std::string& name) const {
    fs::copy(root(), in_ / name, fs::copy_options::recursive);
    return in_ / name;
  }

 private:
  const std::vector<Setting> settings = {{"steps", "4"},          {"evaluate_every", "2"}, {"checkpoint_every", "1"},
                                         {"data.held_out", "3"},  {"threads", "1"},        {"hyper.width", "4"},
                                         {"schedule.warmup", "1"}};
  tiny::Directory in_;
};

/// Whether every checkpoint of the run can be read.
bool all_whole(const std::string& run) {
  if (!fs::exists(run + "/checkpoints")) return true;
  for (const std::string& path : train::checkpoints(run + "/checkpoints")) {
    if (train::read_state(path).step != train::step_of_checkpoint(path)) return false;
    load_arrays(path + "/weights.safetensors");
    load_arrays(path + "/optimizer.safetensors");
  }
  return true;
}

/// Whether two runs ended with the same weights, moments, state, metrics and ledger.
bool same_end(const std::string& a, const std::string& b) {
  return names(a).back() == names(b).back() && metrics(a) == metrics(b) &&
         read_text(a + "/ledger.jsonl") == read_text(b + "/ledger.jsonl") &&
         same_bits(a + "/checkpoints/" + names(a).back(), b + "/checkpoints/" + names(b).back());
}

/// The names among the checkpoints of a run that an undisturbed one does not have.
std::vector<std::string> left_over(const std::string& run, const std::string& undisturbed) {
  std::vector<std::string> left;
  for (const std::string& name : names_in(run + "/checkpoints"))
    if (!fs::exists(undisturbed + "/checkpoints/" + name) &&
        (train::step_of_checkpoint(name) >= 0 || fs::path(name).extension() == unfinished))
      left.push_back(name);
  return left;
}

/// Makes each operation of `work`, which starts from the contents of `before`, fail in turn; then trains to the end.
/// Returns how many old checkpoints a failed operation left.
template <class Work>
int fail_at_each(const Trainings& trainings, const std::string& before, const Work& work,
                 const std::string& undisturbed) {
  trainings.restore(before);
  REQUIRE(in_child(trainings.root(), Fault::none, -1, work).code == 0);
  REQUIRE(same_end(trainings.run(), undisturbed));
  const int count = faults::report().count;
  REQUIRE(count > 20);
  REQUIRE(count < faults::most_operations);
  const std::vector<faults::Operation> operations(faults::report().operations, faults::report().operations + count);
  int tried[4] = {}, ignored = 0, left = 0;
  for (const Fault fault : {Fault::kill, Fault::no_space, Fault::io_error}) {
    for (int at = 0; at < count; ++at) {
      if (fault == Fault::no_space && !operations[static_cast<std::size_t>(at)].needs_room) continue;
      const faults::Operation& operation = operations[static_cast<std::size_t>(at)];
      CAPTURE(static_cast<int>(fault));
      CAPTURE(at);
      CAPTURE(std::string(operation.name));
      CAPTURE(std::string(operation.path));
      trainings.restore(before);
      const Ended ended = in_child(trainings.root(), fault, at, work);
      CAPTURE(ended.error);
      ++tried[static_cast<int>(fault)];
      if (fault == Fault::kill) {
        CHECK(ended.killed);
      } else if (ended.code == 0) {
        ++ignored;  // a failure that does not matter, such as that to remove an old checkpoint
        CHECK(same_end(trainings.run(), undisturbed));
        for (const std::string& name : left_over(trainings.run(), undisturbed)) {
          CAPTURE(name);
          ++left;
          CHECK(ended.warnings.find("cannot remove '" + trainings.run() + "/checkpoints/" + name + "': ") !=
                std::string::npos);
        }
      } else {
        CHECK(ended.code == 1);
        CHECK(ended.error.find(trainings.root()) != std::string::npos);
        CHECK(ended.error.find('\n') == std::string::npos);
      }
      CHECK(all_whole(trainings.run()));
      const Ended after = in_child(trainings.root(), Fault::none, -1, [&] { trainings.train(); });
      CHECK(after.error == "");
      CHECK(after.code == 0);
      CHECK(same_end(trainings.run(), undisturbed));
      if (left_over(trainings.run(), undisturbed).empty()) continue;
      // The next checkpoint that is written removes what is left.
      const auto go_on = [&] { Run::resume(trainings.run(), {{"steps", "5"}}).train(); };
      CHECK(in_child(trainings.root(), Fault::none, -1, go_on).code == 0);
      for (const std::string& name : names_in(trainings.run() + "/checkpoints")) {
        CAPTURE(name);
        CHECK(fs::path(name).extension() != unfinished);
      }
      CHECK(names(trainings.run()).size() <= names(undisturbed).size() + 1);
    }
  }
  const int harmful = tried[2] + tried[3] - ignored;
  CHECK(tried[1] == count);
  CHECK(tried[2] > 0);
  CHECK(tried[3] == count);
  CHECK(harmful > count / 2);
  MESSAGE(count << " operations: killed at " << tried[1] << ", no space at " << tried[2] << ", input/output errors at "
                << tried[3] << "; " << ignored << " of them without harm");
  return left;
}

}  // namespace

TEST_CASE("after a kill, a full disk or an error at any file operation, a training resumes to the same bits") {
  const Trainings trainings;
  REQUIRE(in_child(trainings.root(), Fault::none, -1, [&] { trainings.train(); }).code == 0);
  const std::string undisturbed = trainings.keep_as("undisturbed") + "/run";
  CHECK(fail_at_each(
            trainings, "", [&] { trainings.train(); }, undisturbed) > 0);
}

TEST_CASE("the same for a resumed run whose metrics are ahead, and while later checkpoints are set aside") {
  const Trainings trainings;
  REQUIRE(in_child(trainings.root(), Fault::none, -1, [&] { trainings.train(); }).code == 0);
  const std::string undisturbed = trainings.keep_as("undisturbed") + "/run";
  // Two checkpoints remain, of steps 3 and 4.
  fail_at_each(
      trainings, fs::path(undisturbed).parent_path().string(),
      [&] { Run::resume(trainings.run(), {}, CheckpointChoice::parse("3")).train(with_warnings()); }, undisturbed);
}

TEST_CASE("a resume that changes the recipe leaves a run of the old or of the new recipe, wherever it fails") {
  const Trainings trainings;
  const auto stopped = [&] {
    Run run = Run::create(trainings.recipe(), trainings.run());
    Trainer::Callbacks callbacks = with_warnings();
    callbacks.stop = [&] { return run.trainer().step() == 2; };
    run.train(callbacks);
  };
  REQUIRE(in_child(trainings.root(), Fault::none, -1, stopped).code == 0);
  const std::string before = trainings.keep_as("before");
  REQUIRE(in_child(trainings.root(), Fault::none, -1, [&] { trainings.train(); }).code == 0);
  const std::string with_old = trainings.keep_as("old") + "/run";
  const auto change = [&] { Run::resume(trainings.run(), {{"schedule.rate", "0.02"}}).train(with_warnings()); };
  trainings.restore(before);
  REQUIRE(in_child(trainings.root(), Fault::none, -1, change).code == 0);
  const int count = faults::report().count;
  const std::string with_new = trainings.keep_as("new") + "/run";
  REQUIRE(!same_end(with_old, with_new));
  int old_recipes = 0, new_recipes = 0;
  for (const Fault fault : {Fault::kill, Fault::io_error})
    for (int at = 0; at < count; ++at) {
      CAPTURE(static_cast<int>(fault));
      CAPTURE(at);
      trainings.restore(before);
      in_child(trainings.root(), fault, at, change);
      const auto recipe = nlohmann::json::parse(read_text(trainings.run() + "/recipe.json"));
      const bool is_new = recipe["schedule"]["rate"] == 0.02;
      ++(is_new ? new_recipes : old_recipes);
      CHECK(recipe.contains("changes") == is_new);
      CHECK(in_child(trainings.root(), Fault::none, -1, [&] { trainings.train(); }).code == 0);
      CHECK(same_end(trainings.run(), is_new ? with_new : with_old));
    }
  CHECK(old_recipes > 0);
  CHECK(new_recipes > 0);
}

TEST_CASE("without memory for a folder's list, or for a folder, the error is the one about memory") {
  const tiny::Directory in;
  const std::string folder = in / "runs";
  fs::create_directories(folder);
  const auto error_of = [&](const auto& work) {
    const Ended ended = in_child(folder, Fault::no_memory, 0, work);
    CHECK(ended.code == 1);
    return ended.error;
  };
  const std::string listing = error_of([&] { names_in(folder); });
  CHECK(listing.rfind("out of memory: cannot list '" + folder + "', and ", 0) == 0);
  CHECK(listing.find(" left") != std::string::npos);
  const std::string making = error_of([&] { make_folder(folder + "/run"); });
  CHECK(making.rfind("out of memory: cannot make '" + folder + "/run', and ", 0) == 0);
}
