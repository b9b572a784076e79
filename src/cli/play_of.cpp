#include "play_of.hpp"

#include "durable.hpp"
#include "recorded.hpp"
#include "run_options.hpp"

namespace xtape::cli {

void add_play(CLI::App& command, PlayArguments& arguments) {
  command
      .add_option("PLAY", arguments.what,
                  "A recipe, whose first update is played; a run, whose next one is; a capsule or a saved tape")
      ->required();
  add_settings(command, arguments.set);
  command.add_option("--in", arguments.in, "Of a saved tape: a safetensors file with the inputs by name");
  command.add_option("--threads", arguments.threads, "The number of threads (0: all cores)")->capture_default_str();
  command.add_option("--precision", arguments.precision, "Round the factors of products to this precision")
      ->check(CLI::IsMember({"float32", "bf16x3", "bf16"}));
}

void set_options(const PlayArguments& arguments, RecordedPlay& play) {
  if (arguments.threads > 0) play.options.threads = arguments.threads;
  if (!arguments.precision.empty()) play.options.precision = precision_named(arguments.precision);
}

RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments) {
  if (tape.outputs.empty()) throw WrongInput("the saved tape names no output to play");
  RecordedPlay play{tape.tape, {}, arrays_for(wanted_by(tape.tape, tape.inputs), arguments.in), {}};
  for (const auto& each : tape.outputs) play.outputs.push_back(each.value);
  play.options.carries = tape.tape.states();
  for (const Carry& state : play.options.carries)
    if (!play.inputs.has(state.input.node().name))
      play.inputs.add(state.input.node().name, Array(state.input.dtype(), state.input.shape()));
  set_options(arguments, play);
  return play;
}

namespace {
RecordedPlay named_play(const PlayArguments& arguments) {
  if (is_capsule(arguments.what)) return recorded_play(Capsule::load(arguments.what));
  if (is_saved_tape(arguments.what)) return play_of(Tape::load(arguments.what), arguments);
  if (is_folder(arguments.what)) return Run::open(arguments.what, parse_settings(arguments.set)).trainer().next_play();
  return first_play(Recipe::load(arguments.what, parse_settings(arguments.set)));
}
}  // namespace

RecordedPlay play_of(const PlayArguments& arguments) {
  return as_wrong_input([&] {
    RecordedPlay play = named_play(arguments);
    set_options(arguments, play);
    return play;
  });
}

}  // namespace xtape::cli
