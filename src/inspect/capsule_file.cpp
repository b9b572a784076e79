// The folder of a capsule. It contains a saved tape and capsule.json.
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "tape/tape_json.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

namespace {
constexpr const char* capsule_file = "capsule.json";
constexpr const char* capsule_format = "xtape capsule";
constexpr std::int64_t capsule_version = 2;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

Json json_of_range(const Range& range) {
  return {{"min", json_of(range.min)},
          {"max", json_of(range.max)},
          {"count", range.count},
          {"zeros", range.zeros},
          {"nan", range.nans},
          {"inf", range.positive_infinities},
          {"-inf", range.negative_infinities}};
}

Range range_of(const JsonNode& json) {
  json.only({"min", "max", "count", "zeros", "nan", "inf", "-inf"});
  const auto integer = [&](const char* key) { return json.at(key).integer(0, most); };
  return {json.at("min").number(), json.at("max").number(), integer("count"), integer("zeros"),
          integer("nan"),          integer("inf"),          integer("-inf")};
}

Json json_of_failure(const Failure& failure) {
  Json causes = Json::array();
  for (const Cause& cause : failure.causes)
    causes.push_back({{"node", cause.node},
                      {"type", cause.type},
                      {"site", cause.site},
                      {"range", json_of_range(cause.range)},
                      {"element", cause.element},
                      {"number", cause.number},
                      {"time_steps", cause.time_steps},
                      {"row", cause.row}});
  return {{"what", failure.what},
          {"error", failure.error},
          {"op", failure.op},
          {"call", failure.call},
          {"node", failure.node},
          {"type", failure.type},
          {"site", failure.site},
          {"backward", failure.backward},
          {"passed_on", failure.passed_on},
          {"time_steps", failure.time_steps},
          {"element", failure.element},
          {"range", json_of_range(failure.range)},
          {"causes", causes}};
}

std::vector<std::int64_t> integers_of(const JsonNode& json, const char* key) {
  std::vector<std::int64_t> list;
  for (const JsonNode& each : json.at(key).elements()) list.push_back(each.integer(0, most));
  return list;
}

/// Version 1 has one time step for the whole failure, counted in the order of playing. It has neither "passed_on" nor
/// the elements of causes.
Failure failure_of(const JsonNode& json, std::int64_t version) {
  if (version == 1)
    json.only(
        {"what", "error", "op", "call", "node", "type", "site", "backward", "time_step", "element", "range", "causes"});
  else
    json.only({"what", "error", "op", "call", "node", "type", "site", "backward", "passed_on", "time_steps", "element",
               "range", "causes"});
  const auto text = [&](const char* key) { return json.at(key).text(); };
  Failure failure;
  failure.what = text("what");
  failure.error = json.at("error").flag();
  failure.op = text("op");
  failure.call = text("call");
  failure.node = text("node");
  failure.type = text("type");
  failure.site = text("site");
  failure.backward = json.at("backward").flag();
  if (version > 1) {
    failure.passed_on = json.at("passed_on").flag();
    failure.time_steps = integers_of(json, "time_steps");
  } else if (const std::int64_t step = json.at("time_step").integer(-1, most); step >= 0) {
    failure.time_steps = {step};
  }
  failure.element = integers_of(json, "element");
  failure.range = range_of(json.at("range"));
  for (const JsonNode& cause : json.at("causes").elements()) {
    Cause& made = failure.causes.emplace_back(
        Cause{cause.at("node").text(), cause.at("type").text(), cause.at("site").text(), range_of(cause.at("range"))});
    if (version == 1) {
      cause.only({"node", "type", "site", "range"});
      continue;
    }
    cause.only({"node", "type", "site", "range", "element", "number", "time_steps", "row"});
    made.element = integers_of(cause, "element");
    made.number = cause.at("number").text();
    made.time_steps = integers_of(cause, "time_steps");
    if (cause.has("row")) made.row = cause.at("row").text();
  }
  return failure;
}
}  // namespace

bool is_capsule(const std::string& path) {
  return is_saved_tape(path) && is_plain_file(path_in(path, capsule_file));
}

void Capsule::save(const std::string& path) const {
  if (path_exists(path)) {
    const std::string what = "cannot save the capsule: '" + path + "' exists and ";
    if (!is_capsule(path)) throw FileError(what + "is not a capsule");
    if (const std::string other = other_name_in(path, {tape_file, arrays_file, capsule_file}); !other.empty())
      throw FileError(what + "also has '" + other + "'");
  }
  Json digest_texts = Json::array();
  for (const std::uint64_t digest : digests) digest_texts.push_back(hexadecimal(digest));
  const Json play = {{"xtape", version},
                     {"instruction_set", instruction_set},
                     {"seed", hexadecimal(seed)},
                     {"step", hexadecimal(step)},
                     {"precision", name_of(precision)}};
  const Json json = {{"format", capsule_format},
                     {"version", capsule_version},
                     {"failure", json_of_failure(failure)},
                     {"play", play},
                     {"digests", digest_texts}};
  const TapeText written = text_of(tape, outputs);
  write_folder(path, [&](const std::string& beside) {
    write_saved_tape(beside, written);
    write_file(path_in(beside, capsule_file), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  });
}

Capsule Capsule::load(const std::string& path) {
  if (!is_capsule(path)) throw FileError("'" + path + "' is not a capsule: a saved tape with " + capsule_file);
  const std::string file = path_in(path, capsule_file);
  const JsonNode root(read_file(file), file, JsonErrors::file);
  if (!root.has("format") || !root.at("format").is_string() || root.at("format").text() != capsule_format)
    root.fail(std::string("this is not a capsule: its \"format\" must be \"") + capsule_format + "\"");
  const std::int64_t version = root.at("version").integer(1, capsule_version);
  root.only({"format", "version", "failure", "play", "digests"});
  SavedTape saved = Tape::load(path);
  Capsule capsule;
  capsule.failure = failure_of(root.at("failure"), version);
  capsule.tape = saved.tape;
  capsule.operands = saved.parameters;
  capsule.outputs = saved.outputs;
  if (capsule.outputs.empty()) root.fail("a capsule has outputs, which '" + path + "/" + tape_file + "' does not name");
  for (const JsonNode& digest : root.at("digests").elements()) capsule.digests.push_back(bits_of(digest));
  const JsonNode play = root.at("play");
  play.only({"xtape", "instruction_set", "seed", "step", "precision"});
  capsule.version = play.at("xtape").text();
  capsule.instruction_set = play.at("instruction_set").text();
  capsule.seed = bits_of(play.at("seed"));
  capsule.step = bits_of(play.at("step"));
  try {
    capsule.precision = precision_named(play.at("precision").text());
  } catch (const Error& error) {
    play.at("precision").fail(error.what());
  }
  return capsule;
}

}  // namespace xtape
