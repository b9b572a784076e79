// Tapes that are saved and loaded again.
#include <unistd.h>

#include <filesystem>

#include "oracles.hpp"
#include "same_bits.hpp"
#include "tape/tape_json.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape::fuzz {

namespace {
/// A folder of this process, in memory if the system has such a folder; removed by the destructor.
class Folder {
 public:
  Folder() {
    namespace fs = std::filesystem;
    const fs::path where = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    path_ = (where / ("xtape-tape-" + std::to_string(getpid()))).string();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The subject on a tape that was saved and loaded.
Subject reloaded(const Subject& from) {
  const Folder folder;
  NamedVars outputs;
  for (std::size_t i = 0; i < from.outputs.size(); ++i) outputs.add("y" + std::to_string(i), from.outputs[i]);
  from.tape.save(folder.path(), outputs);
  const SavedTape saved = Tape::load(folder.path(), {}, &ops());
  Subject subject = from;
  subject.tape = saved.tape;
  subject.outputs.clear();
  for (const auto& each : saved.outputs) subject.outputs.push_back(each.value);
  const auto now = [&](const Var& var) { return saved.tape.var(var.id()); };
  for (Var& input : subject.inputs) input = now(input);
  for (Carry& carry : subject.carries) carry = {now(carry.input), now(carry.output)};
  return subject;
}

/// Records the gradients of the float outputs by the float inputs and parameters, as further outputs.
void record_gradients(Subject& subject) {
  Vars outputs, by;
  for (const Var& output : subject.outputs)
    if (is_floating(output.dtype())) outputs.push_back(output);
  for (std::size_t i = 0; i < subject.tape.size(); ++i) {
    const Node& node = subject.tape.node(i);
    if ((node.op == &input_op() || node.op == &parameter_op()) && is_floating(node.outputs[0].dtype))
      by.push_back(subject.tape.var({static_cast<std::int32_t>(i), 0}));
  }
  if (outputs.empty() || by.empty()) return;
  for (const Var& gradient : grad(outputs, by, {}, {.materialize_grads = true, .sum_outputs = true}))
    subject.give(gradient);
}

/// Whether gradients can be recorded: an op of a user may have none.
bool has_gradients(const Recipe& recipe) {
  Subject subject(recipe.mode, Floats::as_written);
  recipe.record(subject);
  try {
    record_gradients(subject);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Result differs(const Subject& a, const Subject& b, int threads) {
  if (text_of(a.tape, {}).text != text_of(b.tape, {}).text) return "the loaded tape is another one";
  return equal_bits(played(b, all_on(threads), make_arena()), played(a, all_on(), make_arena()), "loaded", "recorded");
}
}  // namespace

Check same_after_saving(int threads) {
  return {"saved and loaded, on " + std::to_string(threads) + " threads", [threads](Trial& trial) -> Result {
            Subject subject(trial.recipe().mode, Floats::as_written);
            trial.recipe().record(subject);
            Subject again = reloaded(subject);
            if (const Result found = differs(subject, again, threads)) return found;
            if (!has_gradients(trial.recipe())) return std::nullopt;
            record_gradients(subject);
            record_gradients(again);
            if (const Result found = differs(subject, again, threads)) return "with gradients: " + *found;
            return std::nullopt;
          }};
}

}  // namespace xtape::fuzz
