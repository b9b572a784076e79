// A play as a folder that contains a saved tape, the arrays of its inputs, and play.json.
#include <nlohmann/json.hpp>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "base/threads/instruction_set.hpp"
#include "tape/tape_json.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

namespace {
constexpr const char* play_file = "play.json";
constexpr const char* inputs_file = "inputs.safetensors";
constexpr const char* play_format = "xtape play";
constexpr std::int64_t play_version = 1;

/// Reads the arrays of the inputs. Throws FileError if an input has no array or one of another type.
Store read_inputs(const std::string& file, const NamedVars& inputs) {
  Store arrays = load_arrays(file);
  for (const auto& [name, var] : inputs) {
    const Array* array = arrays.find(name);
    if (array == nullptr || array->dtype() != var.dtype() || array->shape() != var.shape())
      throw FileError(file + " does not hold '" + name + "' as " + to_string(var.type()) + ", which the tape reads");
  }
  for (const Store::Entry& entry : arrays)
    if (!inputs.has(entry.name)) throw FileError(file + " has '" + entry.name + "', which is not an input of the tape");
  return arrays;
}
}  // namespace

bool is_saved_play(const std::string& path) {
  return is_saved_tape(path) && is_plain_file(path_in(path, play_file));
}

void save_play(const RecordedPlay& play, const std::vector<std::string>& outputs, const std::string& path) {
  if (outputs.size() != play.outputs.size())
    throw Error("save_play: got " + std::to_string(outputs.size()) + " names for " +
                std::to_string(play.outputs.size()) + " outputs");
  if (path_exists(path)) {
    const std::string what = "cannot save the play: '" + path + "' exists and ";
    if (!is_saved_play(path)) throw FileError(what + "is not a saved play");
    if (const std::string other = other_name_in(path, {tape_file, arrays_file, play_file, inputs_file}); !other.empty())
      throw FileError(what + "also has '" + other + "'");
  }
  NamedVars named;
  for (std::size_t i = 0; i < outputs.size(); ++i) named.add(outputs[i], play.outputs[i]);
  const Json json = {{"format", play_format},
                     {"version", play_version},
                     {"xtape", XTAPE_VERSION},
                     {"instruction_set", name_of(instruction_set())},
                     {"seed", hexadecimal(play.options.seed)},
                     {"step", hexadecimal(play.step)},
                     {"precision", name_of(play.options.precision)}};
  const TapeText written = text_of(play.tape, named);
  write_folder(path, [&](const std::string& beside) {
    write_saved_tape(beside, written);
    save_arrays(path_in(beside, inputs_file), play.inputs);
    write_file(path_in(beside, play_file), json.dump(2) + "\n");
  });
}

SavedPlay load_play(const std::string& path) {
  if (!is_saved_play(path)) throw FileError("'" + path + "' is not a saved play: a saved tape with " + play_file);
  const std::string file = path_in(path, play_file);
  const JsonNode root(read_file(file), file, JsonErrors::file);
  if (!root.has("format") || !root.at("format").is_string() || root.at("format").text() != play_format)
    root.fail(std::string("this is not a play: its \"format\" must be \"") + play_format + "\"");
  root.at("version").integer(1, play_version);
  root.only({"format", "version", "xtape", "instruction_set", "seed", "step", "precision"});
  SavedTape saved = Tape::load(path);
  SavedPlay loaded;
  loaded.outputs = saved.outputs;
  if (saved.outputs.empty()) root.fail("a play has outputs, which '" + path + "/" + tape_file + "' does not name");
  RecordedPlay& play = loaded.play;
  play.tape = saved.tape;
  for (const auto& each : saved.outputs) play.outputs.push_back(each.value);
  play.options.carries = saved.tape.states();
  play.inputs = read_inputs(path_in(path, inputs_file), saved.inputs);
  play.step = bits_of(root.at("step"));
  play.options.seed = bits_of(root.at("seed"));
  try {
    play.options.precision = precision_named(root.at("precision").text());
  } catch (const Error& error) {
    root.at("precision").fail(error.what());
  }
  return loaded;
}

}  // namespace xtape
