#include "cli/play_of.hpp"

#include <array>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "cli/recorded.hpp"
#include "cli/run_options.hpp"
#include "train/run/ledger.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

namespace {
/// Returns the kind of a JSON file. The keys of its object determine the kind.
Kind kind_of_json(const std::string& path) {
  const JsonNode root(read_file(path), path, JsonErrors::file);
  if (root.has("digests")) return Kind::digests;
  if (root.has("format")) throw WrongInput("'" + path + "' is a file of a saved tape: give the folder");
  return root.has("model") || root.has("blocks") ? Kind::definition : Kind::recipe;
}
}  // namespace

Kind kind_of(const std::string& path) {
  if (!path_exists(path) && path.find('/') == std::string::npos && !recipe_file(path).empty())
    return Kind::recipe;  // a name, as for `xtape train`: "shakespeare_char"
  if (is_capsule(path)) return Kind::capsule;
  if (is_saved_play(path)) return Kind::play;
  if (is_saved_tape(path)) return Kind::tape;
  if (is_plain_file(path + "/recipe.json")) return Kind::run;
  if (is_folder(path)) throw WrongInput("'" + path + "' is neither a run nor a saved tape");
  if (path.ends_with(".safetensors")) return Kind::arrays;
  if (is_onnx(path)) return Kind::onnx;
  if (!is_plain_file(path)) throw WrongInput("there is no '" + path + "'");
  return train::is_ledger(path) ? Kind::ledger : kind_of_json(path);
}

std::string kind_text(Kind kind) {
  static const std::array<const char*, 10> names = {"a recipe",     "a run",        "a capsule",    "a saved play",
                                                    "a saved tape", "an ONNX file", "a definition", "digests",
                                                    "arrays",       "a ledger"};
  return names[static_cast<std::size_t>(kind)];
}

SavedTape tape_at(const std::string& path, const PlayArguments& arguments) {
  if (!is_onnx(path)) return load_tape(path);
  return load_tape(path, {arguments.in.empty() ? Store() : load_arrays(arguments.in), sizes_of(arguments.with)});
}

void add_play(CLI::App& command, PlayArguments& arguments, bool plays) {
  add_option(command, "PLAY", arguments.what,
             "A recipe, whose first update is played; a run, whose next one is; a capsule, the folder failed_play of a "
             "run, a saved tape, or an ONNX file",
             required);
  add_settings(command, arguments.set);
  if (plays) {
    command.add_option("--in", arguments.in, "Of a tape: a safetensors file with the inputs by name");
    command.add_option("--seed", arguments.seed, "Of a tape: the seed of random ops");
    command.add_option("--step", arguments.step, "Of a tape: the random step");
  }
  command.add_option("--with", arguments.with, "Sizes to record for, such as b=2,t=8: of an ONNX file, its open ones");
  add_threads(command, arguments.threads);
  command.add_option("--precision", arguments.precision, "Round the operands of products to this precision")
      ->check(CLI::IsMember(precision_names()));
  add_bits(command, arguments.bits);
}

void set_options(const PlayArguments& arguments, RecordedPlay& play) {
  if (arguments.threads > 0) play.options.threads = arguments.threads;
  if (!arguments.precision.empty()) play.options.precision = precision_named(arguments.precision);
  if (!arguments.bits.empty()) play.options.bits = bits_named(arguments.bits);
  play.options.seed = arguments.seed.value_or(play.options.seed);
  play.step = arguments.step.value_or(play.step);
}

namespace {
RecordedPlay play_on(const SavedTape& tape, const PlayArguments& arguments, const Store& inputs) {
  if (tape.outputs.empty()) throw WrongInput("the tape names no output to play");
  RecordedPlay play{tape.tape, {}, inputs, {}};
  for (const auto& each : tape.outputs) play.outputs.push_back(each.value);
  play.options.carries = tape.tape.states();
  for (const Carry& state : play.options.carries)
    if (!play.inputs.has(state.input.node().name))
      play.inputs.add(state.input.node().name, Array(state.input.dtype(), state.input.shape()));
  set_options(arguments, play);
  return play;
}
}  // namespace

RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments, bool plays) {
  return play_on(tape, arguments, plays ? arrays_for(wanted_by(tape.tape, tape.inputs), arguments.in) : Store());
}

RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments, const Store& inputs) {
  return play_on(tape, arguments, arrays_among(wanted_by(tape.tape, tape.inputs), inputs, arguments.in));
}

void check_arguments(const PlayArguments& arguments, Kind kind) {
  const bool trains = kind == Kind::recipe || kind == Kind::run;
  const bool is_tape = kind == Kind::tape || kind == Kind::onnx;
  const auto refuse = [&](bool given, const char* option) {
    if (given) throw WrongInput("'" + arguments.what + "' is " + kind_text(kind) + ", which takes no " + option);
  };
  refuse(!arguments.set.empty() && !trains, "--set");
  refuse(!arguments.in.empty() && !is_tape, "--in");
  refuse(!arguments.with.empty() && kind != Kind::onnx, "--with");
  refuse(arguments.seed.has_value() && !is_tape, "--seed");
  refuse(arguments.step.has_value() && !is_tape, "--step");
}

namespace {
RecordedPlay named_play(const PlayArguments& arguments, bool plays) {
  const Kind kind = kind_of(arguments.what);
  check_arguments(arguments, kind);
  switch (kind) {
    case Kind::capsule:
      return recorded_play(Capsule::load(arguments.what));
    case Kind::play:
      return load_play(arguments.what).play;
    case Kind::tape:
    case Kind::onnx:
      return play_of(tape_at(arguments.what, arguments), arguments, plays);
    case Kind::run:
      return Run::open(arguments.what, parse_settings(arguments.set)).trainer().next_play();
    case Kind::recipe:
      return first_play(Recipe::load(arguments.what, parse_settings(arguments.set)));
    default:
      throw WrongInput("a recipe, a run, a capsule, a saved play, a saved tape or an ONNX file can be played; '" +
                       arguments.what + "' is " + kind_text(kind));
  }
}
}  // namespace

RecordedPlay play_of(const PlayArguments& arguments, bool plays) {
  return as_wrong_input([&] {
    RecordedPlay play = named_play(arguments, plays);
    set_options(arguments, play);
    return play;
  });
}

}  // namespace xtape::cli
