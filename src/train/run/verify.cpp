// Compares a run with its ledger, and replays updates.
#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <random>

#include "base/arrays/lengths.hpp"
#include "base/bytes/encodings.hpp"
#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "base/system/instruction_set.hpp"
#include "tape/tape_json.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_state.hpp"
#include "xtape/literal.hpp"

namespace xtape {

namespace {
using train::LedgerSession;

/// Updates made by sessions with the same files and data: those after `begin` up to `end`.
struct Stretch {
  LedgerSession session;
  std::int64_t begin, end;
};

std::vector<Stretch> stretches_of(const train::LedgerContent& ledger) {
  std::vector<Stretch> stretches;
  for (const LedgerSession& session : ledger.sessions) {
    if (!stretches.empty() && stretches.back().session.trains_like(session)) continue;
    if (!stretches.empty()) stretches.back().end = session.step;
    stretches.push_back({session, session.step, ledger.last_update()});
  }
  return stretches;
}

std::string numbers_text(const char* what, std::uint64_t ours, std::uint64_t theirs) {
  const auto text = [](std::uint64_t bits) {
    return to_string(Literal(std::bit_cast<double>(bits))) + " (" + hexadecimal(bits) + ")";
  };
  if (ours == theirs) return std::string(what) + " " + text(ours) + " is the same";
  return std::string(what) + " " + text(ours) + ", in the ledger " + text(theirs);
}

/// Returns the names of the files whose digests differ between the lists, or that only one of them has.
std::vector<std::string> different(const train::FileDigests& ours, const train::FileDigests& theirs) {
  std::vector<std::string> names;
  for (const auto& each : theirs)
    if (!contains(ours, each)) names.push_back(each.first);
  for (const auto& each : ours)
    if (!contains(theirs, each) && !contains(names, each.first)) names.push_back(each.first);
  return names;
}
}  // namespace

struct Run::Data::Verifier {
  Verifier(const std::string& the_directory, const VerifyOptions& the_options);
  Verification verify();

 private:
  void tell(const std::string& sentence) const {
    if (options_.tell) options_.tell(sentence);
  }
  void differ(const std::string& sentence) {
    found_.same = false;
    tell(sentence);
  }
  std::string path_of(std::int64_t step) const {
    return directory_ + "/" + train::checkpoints_folder + "/" + train::checkpoint_name(step);
  }
  const Stretch& stretch_of(std::int64_t update) const;
  /// Returns the step from which an update can be replayed: of a checkpoint, or 0 for the initial weights. -1: none.
  std::int64_t base_of(std::int64_t update) const;
  std::vector<std::int64_t> chosen() const;
  void check_files();
  void check_checkpoint(std::int64_t step);
  void check_data(const Stretch& stretch);
  void open(const Stretch& stretch);
  /// Gives the trainer the state after update `step`.
  void start(std::int64_t step);
  /// Replays up to an update. Returns false if one differs.
  bool replay(std::int64_t update);
  /// Makes an update. Returns what differs from the ledger, or "".
  std::string error_of_update();
  /// Whether the weights after update `step`, which the model has, are others than those of the ledger.
  bool has_other_weights(std::int64_t step);

  std::string directory_;
  const VerifyOptions& options_;
  std::vector<std::int64_t> checkpoints_;  // their steps
  train::LedgerContent ledger_;
  std::vector<Stretch> stretches_;
  std::optional<Run> run_;  // with the settings of `opened_`
  const Stretch* opened_ = nullptr;
  std::int64_t from_ = 0;  // the step from which the trainer has replayed
  Verification found_;
};

Run::Data::Verifier::Verifier(const std::string& the_directory, const VerifyOptions& the_options)
    : directory_(the_directory), options_(the_options) {
  if (!path_exists(path_in(directory_, "recipe.json")))
    throw FileError(directory_ + " is not a run: it has no recipe.json");
  // Listed first, because a training that goes on writes a checkpoint's line before the checkpoint.
  for (const std::string& each : train::checkpoints(path_in(directory_, train::checkpoints_folder)))
    checkpoints_.push_back(train::step_of_checkpoint(each));
  ledger_ = train::read_ledger(directory_);
  stretches_ = stretches_of(ledger_);
}

const Stretch& Run::Data::Verifier::stretch_of(std::int64_t update) const {
  return *std::ranges::find_if(stretches_, [&](const Stretch& each) { return update <= each.end; });
}

std::int64_t Run::Data::Verifier::base_of(std::int64_t update) const {
  const std::int64_t begin = stretch_of(update).begin;
  const auto after = std::ranges::lower_bound(checkpoints_, update);
  if (after != checkpoints_.begin() && *std::prev(after) >= begin) return *std::prev(after);
  return begin == 0 ? 0 : -1;
}

std::vector<std::int64_t> Run::Data::Verifier::chosen() const {
  std::vector<std::int64_t> all, updates = options_.updates;
  for (const auto& [update, bits] : ledger_.updates)
    if (base_of(update) >= 0) all.push_back(update);
  for (const std::int64_t update : updates) {
    if (!ledger_.updates.contains(update))
      throw FileError("the ledger of " + directory_ + " has no update " + std::to_string(update) + "; its last is " +
                      std::to_string(ledger_.last_update()));
    if (!contains(all, update))
      throw FileError("update " + std::to_string(update) + " cannot be replayed: the run changed after update " +
                      std::to_string(stretch_of(update).begin) + ", and no checkpoint from there to it is left");
  }
  if (options_.sample > 0)
    std::ranges::sample(all, std::back_inserter(updates), options_.sample, std::mt19937_64(std::random_device()()));
  if (updates.empty()) {
    std::map<std::int64_t, std::int64_t> last;  // by base
    for (const std::int64_t update : all)
      if (const std::int64_t base = base_of(update); update <= round_up(base + 1, train::digest_every))
        last[base] = update;
    for (const auto& [base, update] : last) updates.push_back(update);
  }
  std::ranges::sort(updates);
  return updates;
}

void Run::Data::Verifier::check_files() {
  const train::FileDigests& files = ledger_.sessions.back().files;
  for (const auto& [name, digest] : files) {
    const std::string path = path_in(directory_, name);
    if (!path_exists(path))
      differ(path + " is missing: the ledger has its digest");
    else if (digest_of_file(path) != digest)
      differ(path + " differs from the ledger: it was another file during the training");
  }
  const auto first = std::ranges::lower_bound(checkpoints_, ledger_.sessions.front().step);  // that the ledger knows
  std::for_each(first, checkpoints_.end(), [&](std::int64_t step) { check_checkpoint(step); });
  const std::int64_t count = checkpoints_.end() - first;
  if (found_.same)
    tell(std::to_string(files.size()) + " files and " + std::to_string(count) +
         (count == 1 ? " checkpoint of " : " checkpoints of ") + directory_ + " are those of its ledger");
}

void Run::Data::Verifier::check_checkpoint(std::int64_t step) {
  const std::string path = path_of(step);
  const train::FileDigests files = train::digests_in(path);
  const train::LedgerCheckpoint* last = nullptr;
  for (const train::LedgerCheckpoint& each : ledger_.checkpoints) {
    if (each.step != step) continue;
    if (each.files == files) return;
    last = &each;
  }
  if (last == nullptr) return differ(path + " is not in the ledger");
  for (const std::string& name : different(files, last->files))
    differ(path_in(path, name) + " differs from the ledger");
}

void Run::Data::Verifier::check_data(const Stretch& stretch) {
  const LedgerSession now = run_->data_->session();
  if (now.data == stretch.session.data) return;
  const train::FileDigests& theirs = stretch.session.data_files;
  std::vector<std::string> names;  // files without a digest, such as folders and pipes, may differ
  for (std::size_t i = 0; i < now.data_files.size(); ++i)
    if (const auto& [name, digest] = now.data_files[i];
        i >= theirs.size() || digest.empty() || digest != theirs[i].second)
      names.push_back(name);
  differ((names.empty() ? "the data" : joined(names)) + (names.size() > 1 ? " differ" : " differs") +
         " from the ledger: the data was another one during the training");
}

void Run::Data::Verifier::open(const Stretch& stretch) {
  std::vector<Setting> settings =
      train::settings_of_update(read_file(path_in(directory_, "recipe.json")), stretch.begin + 1);
  settings.insert(settings.end(), options_.settings.begin(), options_.settings.end());
  run_.reset();
  run_.emplace(Run::open(directory_, settings));
  run_->data_->only_reads = true;
  opened_ = &stretch;
  const std::string trained = "xtape " + stretch.session.version + " on " + stretch.session.instruction_set;
  const std::string here = "xtape " XTAPE_VERSION " on " + std::string(name_of(instruction_set()));
  if (trained != here) tell("trained by " + trained + ", replayed by " + here);
}

void Run::Data::Verifier::start(std::int64_t step) {
  Data& d = *run_->data_;
  if (step == 0) {
    d.trainer.reset();
    d.model = train::run_model(d.recipe, directory_, false);
  }
  if (!d.trainer) d.trainer.emplace(d.new_trainer());
  if (step > 0) d.trainer->load(path_of(step));
  from_ = step;
}

std::string Run::Data::Verifier::error_of_update() {
  Data& d = *run_->data_;
  if (options_.play && contains(options_.updates, d.trainer->step() + 1)) options_.play(d.trainer->next_play());
  StepReport report;
  try {
    report = d.trainer->update();
  } catch (const TrainingError& error) {
    return error.what();
  }
  ++found_.replayed;
  if (options_.step) options_.step(report);
  const train::LedgerUpdate ours = train::LedgerUpdate::of(report);
  const auto theirs = ledger_.updates.find(report.step);
  if (theirs != ledger_.updates.end() && ours != theirs->second)
    return numbers_text("loss", ours.loss, theirs->second.loss) + "; " +
           numbers_text("gradient norm", ours.norm, theirs->second.norm);
  return has_other_weights(report.step) ? "the loss and gradient norm of the ledger, but other weights after it" : "";
}

bool Run::Data::Verifier::has_other_weights(std::int64_t step) {
  const auto known = ledger_.weights.find(step);
  return known != ledger_.weights.end() && known->second != run_->data_->weights_digest();
}

bool Run::Data::Verifier::replay(std::int64_t update) {
  const Stretch& stretch = stretch_of(update);
  if (opened_ != &stretch) {
    open(stretch);
    check_data(stretch);
    if (!found_.same) return false;
  }
  Data& d = *run_->data_;
  const std::int64_t base = base_of(update);
  if (!d.trainer || from_ != base || d.trainer->step() >= update) start(base);
  const std::string origin = from_ == 0 ? "the initial weights" : "checkpoint " + std::to_string(from_);
  if (d.trainer->step() == from_ && has_other_weights(from_)) {
    differ(origin + (from_ == 0 ? " differ" : " differs") + " from the ledger");
    return false;
  }
  const std::int64_t first = d.trainer->step() + 1;
  while (d.trainer->step() < update) {
    const std::int64_t number = d.trainer->step() + 1;
    const std::string error = error_of_update();
    if (error.empty()) continue;
    found_.differs = number;
    differ("update " + std::to_string(number) + ", replayed from " + origin + ": " + error);
    return false;
  }
  tell((first == update ? "update " : "updates " + std::to_string(first) + " to ") + std::to_string(update) + " from " +
       origin + ": the same bits");
  return true;
}

Verification Run::Data::Verifier::verify() {
  if (const std::string broken = train::broken_seal(path_in(directory_, train::ledger_file)); !broken.empty())
    differ(broken);
  const std::vector<std::int64_t> updates = found_.same ? chosen() : std::vector<std::int64_t>();
  if (found_.same) check_files();
  for (const std::int64_t update : updates)
    if (!found_.same || !replay(update)) break;
  return found_;
}

Verification Run::verify(const std::string& directory, const VerifyOptions& options) {
  return Data::Verifier(directory, options).verify();
}

}  // namespace xtape
