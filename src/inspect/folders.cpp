// The folders of capsules and of saved plays. Each has a saved tape and a JSON file; a saved play also has the arrays
// of its inputs.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/instruction_set.hpp"
#include "inspect/failing.hpp"
#include "tape/tape_json.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

namespace {
constexpr const char* inputs_file = "inputs.safetensors";

/// A kind of folder, by its JSON file.
struct FolderKind {
  std::string what, file;
  std::int64_t version;
  std::vector<std::string> files;  ///< All files of such a folder.

  std::string format() const { return "xtape " + what; }
  bool is_at(const std::string& path) const { return is_saved_tape(path) && is_plain_file(path_in(path, file)); }

  /// Throws FileError if `path` has anything but such a folder.
  void check_replaceable(const std::string& path, const std::string& named) const {
    if (!path_exists(path)) return;
    const std::string exists = "cannot save the " + what + ": '" + path + "' exists and ";
    if (!is_at(path)) throw FileError(exists + "is not a " + named);
    if (const std::string other = other_name_in(path, files); !other.empty())
      throw FileError(exists + "also has '" + other + "'");
  }

  Json begun() const { return {{"format", format()}, {"version", version}}; }

  /// Opens the JSON file of the folder, and loads its tape.
  JsonNode open(const std::string& path, const std::string& named, SavedTape& tape) const {
    if (!is_at(path)) throw FileError("'" + path + "' is not a " + named + ": a saved tape with " + file);
    const std::string name = path_in(path, file);
    const JsonNode root(read_file(name), name, JsonErrors::file);
    if (!root.has("format") || !root.at("format").is_string() || root.at("format").text() != format())
      root.fail("this is not a " + what + ": its \"format\" must be \"" + format() + "\"");
    root.at("version").integer(version, version);
    tape = Tape::load(path);
    if (tape.outputs.empty())
      root.fail("a " + what + " has outputs, which '" + path + "/" + tape_file + "' does not name");
    return root;
  }
};

const FolderKind& capsules() {
  static const FolderKind kind{"capsule", "capsule.json", 2, {tape_file, arrays_file, "capsule.json"}};
  return kind;
}
const FolderKind& plays() {
  static const FolderKind kind{"play", "play.json", 1, {tape_file, arrays_file, "play.json", inputs_file}};
  return kind;
}

/// The keys of a play's settings.
const std::vector<std::string> settings = {"xtape", "instruction_set", "seed", "step", "precision", "bits"};

void add_settings(Json& json, const std::string& version, const std::string& set, std::uint64_t seed,
                  std::uint64_t step, Precision precision, Bits bits) {
  json["xtape"] = version;
  json["instruction_set"] = set;
  json["seed"] = hexadecimal(seed);
  json["step"] = hexadecimal(step);
  json["precision"] = name_of(precision);
  json["bits"] = name_of(bits);
}

/// Reads the precision and the bits of a play. Files of older versions do not name the bits.
void read_precision(const JsonNode& play, Precision& precision, Bits& bits) {
  const auto read = [&](const char* key, auto& value, auto named) {
    const JsonNode json = play.at(key);
    try {
      value = named(json.text());
    } catch (const Error& error) {
      json.fail(error.what());
    }
  };
  read("precision", precision, precision_named);
  if (play.has("bits")) read("bits", bits, bits_named);
}

// What capsule.json says about a failure. The fields of each struct are named once, to write and to read them.

template <class Visit, class Field, class... Others>
void visit_each(const Visit& visit, const char* key, Field& field, Others&... others) {
  visit(key, field);
  if constexpr (sizeof...(others) > 0) visit_each(visit, others...);
}
template <class Visit>
void for_fields(auto& of, const Visit& visit) {
  using Struct = std::remove_cvref_t<decltype(of)>;
  if constexpr (std::is_same_v<Struct, Range>)
    visit_each(visit, "min", of.min, "max", of.max, "count", of.count, "zeros", of.zeros, "nan", of.nans, "inf",
               of.positive_infinities, "-inf", of.negative_infinities);
  else if constexpr (std::is_same_v<Struct, Cause>)
    visit_each(visit, "node", of.node, "type", of.type, "site", of.site, "range", of.range, "element", of.element,
               "number", of.number, "time_steps", of.time_steps, "row", of.row);
  else
    visit_each(visit, "what", of.what, "error", of.error, "op", of.op, "call", of.call, "node", of.node, "type",
               of.type, "site", of.site, "backward", of.backward, "passed_on", of.passed_on, "time_steps",
               of.time_steps, "element", of.element, "range", of.range, "causes", of.causes);
}

template <class Value>
Json written(const Value& value) {
  if constexpr (std::is_same_v<Value, double>) {
    return json_of(value);
  } else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (requires { value.begin(); }) {
    Json list = Json::array();
    for (const auto& each : value) list.push_back(written(each));
    return list;
  } else {
    Json json = Json::object();
    for_fields(value, [&](const char* key, const auto& field) { json[key] = written(field); });
    return json;
  }
}

void check_counts(const JsonNode& json, const Range& range) {
  std::int64_t left = range.count;
  for (const std::int64_t part : {range.nans, range.positive_infinities, range.negative_infinities, range.zeros}) {
    if (part > left) json.fail("there are more zeros, NaN and infinities than elements");
    left -= part;
  }
}

template <class Value>
void read(const JsonNode& json, Value& value) {
  if constexpr (std::is_same_v<Value, double>) {
    value = json.number();
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = json.flag();
  } else if constexpr (std::is_same_v<Value, std::int64_t>) {
    value = json.integer(0, std::numeric_limits<std::int64_t>::max());
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = json.text();
  } else if constexpr (requires { value.begin(); }) {
    for (const JsonNode& each : json.elements()) read(each, value.emplace_back());
  } else {
    std::vector<std::string> keys;
    for_fields(value, [&](const char* key, auto&) { keys.emplace_back(key); });
    json.only(keys);
    for_fields(value, [&](const char* key, auto& field) { read(json.at(key), field); });
    if constexpr (std::is_same_v<Value, Range>) check_counts(json, value);
  }
}

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

bool is_capsule(const std::string& path) {
  return capsules().is_at(path);
}

void Capsule::save(const std::string& path) const {
  capsules().check_replaceable(path, "capsule");
  Json json = capsules().begun();
  json["failure"] = written(failure);
  add_settings(json["play"], version, instruction_set, seed, step, precision, bits);
  json["digests"] = Json::array();
  for (const std::uint64_t digest : digests) json["digests"].push_back(hexadecimal(digest));
  const TapeText text = text_of(tape, outputs);
  write_folder(path, [&](const std::string& beside) {
    write_saved_tape(beside, text);
    write_file(path_in(beside, capsules().file), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  });
}

Capsule Capsule::load(const std::string& path) {
  SavedTape saved;
  const JsonNode root = capsules().open(path, "capsule", saved);
  root.only({"format", "version", "failure", "play", "digests"});
  Capsule capsule;
  read(root.at("failure"), capsule.failure);
  capsule.tape = saved.tape;
  capsule.operands = saved.parameters;
  capsule.outputs = saved.outputs;
  const std::vector<std::int64_t>& element = capsule.failure.element;
  const auto has = [&](const auto& output) { return has_element(output.value.shape(), element); };
  if (!element.empty() && std::ranges::none_of(capsule.outputs, has))
    root.at("failure").at("element").fail("no output has an element " + index_text(element));
  for (const JsonNode& digest : root.at("digests").elements()) capsule.digests.push_back(bits_of(digest));
  const JsonNode play = root.at("play");
  play.only(settings);
  capsule.version = play.at("xtape").text();
  capsule.instruction_set = play.at("instruction_set").text();
  capsule.seed = bits_of(play.at("seed"));
  capsule.step = bits_of(play.at("step"));
  read_precision(play, capsule.precision, capsule.bits);
  return capsule;
}

bool is_saved_play(const std::string& path) {
  return plays().is_at(path);
}

void save_play(const RecordedPlay& play, const std::vector<std::string>& outputs, const std::string& path) {
  if (outputs.size() != play.outputs.size())
    throw Error("save_play: got " + std::to_string(outputs.size()) + " names for " +
                std::to_string(play.outputs.size()) + " outputs");
  plays().check_replaceable(path, "saved play");
  NamedVars named;
  for (std::size_t i = 0; i < outputs.size(); ++i) named.add(outputs[i], play.outputs[i]);
  Json json = plays().begun();
  add_settings(json, XTAPE_VERSION, name_of(instruction_set()), play.options.seed, play.step, play.options.precision,
               play.options.bits);
  const TapeText text = text_of(play.tape, named);
  write_folder(path, [&](const std::string& beside) {
    write_saved_tape(beside, text);
    save_arrays(path_in(beside, inputs_file), play.inputs);
    write_file(path_in(beside, plays().file), json.dump(2) + "\n");
  });
}

SavedPlay load_play(const std::string& path) {
  SavedTape saved;
  const JsonNode root = plays().open(path, "saved play", saved);
  std::vector<std::string> keys = settings;
  keys.insert(keys.end(), {"format", "version"});
  root.only(keys);
  SavedPlay loaded;
  loaded.outputs = saved.outputs;
  RecordedPlay& play = loaded.play;
  play.tape = saved.tape;
  for (const auto& each : saved.outputs) play.outputs.push_back(each.value);
  play.options.carries = saved.tape.states();
  play.inputs = read_inputs(path_in(path, inputs_file), saved.inputs);
  play.step = bits_of(root.at("step"));
  play.options.seed = bits_of(root.at("seed"));
  read_precision(root, play.options.precision, play.options.bits);
  return loaded;
}

}  // namespace xtape
