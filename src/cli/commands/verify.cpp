/// xtape verify: compares a run with its ledger, and replays updates.
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/play_of.hpp"
#include "cli/progress.hpp"
#include "cli/recorded.hpp"
#include "cli/run_options.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct VerifyArguments {
  std::string run, ops;
  std::vector<std::int64_t> updates;
  std::int64_t sample = 0;
  std::vector<std::string> set;
  int threads = 0;
};

void save_ops(const RecordedPlay& recorded, const VerifyArguments& arguments) {
  PlayerOptions options = recorded.options;
  options.digests = true;
  if (arguments.threads > 0) options.threads = arguments.threads;
  Player player(recorded.tape, recorded.outputs, options);
  player.play(feeds_of(recorded), recorded.step);
  save_digests(arguments.ops, player, {{"update", std::to_string(arguments.updates[0])}});
}

void verify(const VerifyArguments& arguments) {
  if (!arguments.ops.empty() && arguments.updates.size() != 1)
    throw WrongInput("--ops needs --updates with one number, the update whose ops it writes");
  VerifyOptions options;
  options.settings = parse_settings(arguments.set);
  if (arguments.threads > 0) options.settings.push_back({"threads", std::to_string(arguments.threads)});
  options.updates = arguments.updates;
  options.sample = arguments.sample;
  options.tell = [](const std::string& sentence) { std::cout << sentence << std::endl; };
  options.step = [](const StepReport&) {
    if (interrupted()) throw Interrupted();
  };
  if (!arguments.ops.empty()) options.play = [&](const RecordedPlay& play) { save_ops(play, arguments); };
  catch_interrupt();
  const Verification found = Run::verify(arguments.run, options);
  if (found.differs > 0 && arguments.ops.empty())
    std::cout << "for the first op that differs: xtape verify " << arguments.run << " --updates " << found.differs
              << " --ops FILE on both machines, then xtape diff of the two files\n";
  if (!found.same) throw WorkFailed(arguments.run + " is not the run of its ledger");
  std::cout << arguments.run << ": " << found.replayed << (found.replayed == 1 ? " update" : " updates")
            << " replayed, with the same bits\n";
}

}  // namespace

void add_verify(CLI::App& program) {
  const auto [command, arguments] = add_command<VerifyArguments>(
      program, "verify", "Replay updates of a run, and compare them with its ledger bit by bit", verify);
  add_option(command, "RUN", arguments.run, "A run directory", required);
  CLI::Option* updates =
      add_option(command, "--updates", arguments.updates,
                 "The numbers of updates to replay, such as 100,5000 (default: those after each checkpoint)",
                 positive | one_value)
          ->delimiter(',');
  add_option(command, "--sample", arguments.sample, "Replay this many updates, drawn at random", positive)
      ->excludes(updates);
  add_option(command, "--ops", arguments.ops,
             "With one update: write the hashes of all its values to this file, for xtape diff")
      ->needs(updates)
      ->type_name("FILE");
  add_settings(command, arguments.set);
  add_threads(command, arguments.threads);
}

}  // namespace xtape::cli
