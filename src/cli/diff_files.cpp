// Finds the first difference between two tapes, saved plays or files of digests.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/instruction_set.hpp"
#include "cli/commands/diff.hpp"
#include "cli/recorded.hpp"
#include "tape/node_text.hpp"
#include "tape/tape_json.hpp"
#include "xtape/op/op.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

bool is_same(const Array& first, const Array& second) {
  return first.dtype() == second.dtype() && first.shape() == second.shape() &&
         std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}

namespace {
/// Compares the elements of the parameters of two tapes that are otherwise the same.
bool same_parameters(const Tape& first, const Tape& second) {
  std::size_t parameters = 0, different = 0;
  std::string found;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first.node(i).op != &parameter_op()) continue;
    ++parameters;
    if (is_same(first.node(i).storage, second.node(i).storage)) continue;
    if (different++ == 0) found = first.node(i).name;
  }
  if (different == 0) return true;
  std::cout << "the same nodes; " << different << " of " << parameters << " parameters have other elements, first '"
            << found << "'\n";
  return false;
}

}  // namespace

bool same_tapes(const SavedTape& first, const SavedTape& second) {
  if (const std::string found = first_difference(first.tape, second.tape); !found.empty()) {
    std::cout << found << '\n';
    return false;
  }
  for (const auto& [name, var] : first.outputs) {
    const Var* other = second.outputs.find(name);
    if (other != nullptr && other->id() == var.id()) continue;
    std::cout << "output '" << name << "' " << (other == nullptr ? "is only in the first\n" : "is another value\n");
    return false;
  }
  for (const auto& [name, var] : second.outputs)
    if (!first.outputs.has(name)) {
      std::cout << "output '" << name << "' is only in the second\n";
      return false;
    }
  return same_parameters(first.tape, second.tape);
}

RecordedTape definition_recorded(const CLI::App& command, const DiffArguments& arguments, const std::string& path) {
  RecordedOptions options = arguments.recorded;
  options.definition.definition = path;
  options.definition.set = arguments.first.set;
  const auto inputs = [&](const Model& model, Tape& tape) {
    return model.inputs(tape, options.function, sizes_of(arguments.first.with));
  };
  return recorded_tape(command, options, false, inputs);
}

SavedTape saved_form(const RecordedTape& recorded) {
  SavedTape saved = recorded;
  saved.parameters = {};
  for (std::size_t i = 0; i < saved.tape.size(); ++i)
    if (const Node& node = saved.tape.node(i); node.op == &parameter_op())
      saved.parameters.add(node.name, saved.tape.var({static_cast<std::int32_t>(i), 0}));
  return saved;
}

// Finds the first difference between two saved plays.

bool same_plays(const std::string& first_path, const std::string& second_path) {
  const SavedPlay one = load_play(first_path), other = load_play(second_path);
  const RecordedPlay &first = one.play, &second = other.play;
  if (!same_tapes({first.tape, {}, {}, one.outputs}, {second.tape, {}, {}, other.outputs})) return false;
  for (const auto& [name, ours] : first.inputs) {
    if (is_same(ours, second.inputs.at(name))) continue;  // the input exists, because the tapes are the same
    std::cout << "the same tapes; input '" << name << "' has other elements\n";
    return false;
  }
  const auto same = [](const char* what, auto ours, auto theirs) {
    if (ours == theirs) return true;
    std::cout << "the same tapes and inputs; " << what << ' ' << name_of(ours) << ", and " << name_of(theirs) << '\n';
    return false;
  };
  if (!same("the precision of products is", first.options.precision, second.options.precision)) return false;
  if (!same("the bits are", first.options.bits, second.options.bits)) return false;
  if (first.options.seed == second.options.seed && first.step == second.step) return true;
  std::cout << "the same tapes and inputs; the random numbers differ: seed " << first.options.seed << ", step "
            << first.step << ", and seed " << second.options.seed << ", step " << second.step << '\n';
  return false;
}

// Files of digests.

namespace {
/// The key contains the number of the node on its tape. Digests of the same tape are therefore aligned even if the
/// passes differ. The last element counts the steps of a node that is played in several steps.
using DigestKey = std::tuple<std::string, std::string, int, int>;
std::vector<DigestKey> keys_of(const std::vector<Digest>& digests) {
  std::map<DigestKey, int> counts;
  std::vector<DigestKey> keys;
  for (const Digest& each : digests) {
    DigestKey key{each.node, each.op, each.output, 0};
    std::get<3>(key) = counts[key]++;
    keys.push_back(key);
  }
  return keys;
}

}  // namespace

bool same_digests(const std::string& first_file, const std::string& second_file) {
  const DigestFile first = load_digests(first_file), second = load_digests(second_file);
  for (const auto& [name, value] : first.play)
    for (const auto& [other, theirs] : second.play)
      if (name == other && value != theirs) std::cout << name << ": " << value << " and " << theirs << '\n';
  std::map<DigestKey, const Digest*> theirs;
  const std::vector<DigestKey> keys = keys_of(first.digests), their_keys = keys_of(second.digests);
  for (std::size_t i = 0; i < their_keys.size(); ++i) theirs[their_keys[i]] = &second.digests[i];
  const Digest* found = nullptr;
  std::size_t both = 0, different = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto other = theirs.find(keys[i]);
    if (other == theirs.end()) continue;
    ++both;
    if (first.digests[i].hash == other->second->hash && first.digests[i].type == other->second->type) continue;
    ++different;
    if (found == nullptr) found = &first.digests[i];
  }
  std::cout << both << " values in both, of which " << different << " differ; " << keys.size() - both
            << " only in the first, " << their_keys.size() - both << " only in the second\n";
  if (found == nullptr) return both == keys.size() && both == their_keys.size();
  std::cout << "first: " << found->node;
  if (found->node.substr(found->node.find(' ') + 1) != found->op) std::cout << " (" << found->op << ")";
  std::cout << " -> " << found->type << (found->site.empty() ? "" : "  at " + found->site) << '\n';
  return false;
}

namespace {
constexpr const char* digests_format = "xtape digests";
constexpr std::int64_t digests_version = 1;
}  // namespace

void save_digests(const std::string& path, const Player& player,
                  const std::vector<std::pair<std::string, std::string>>& play) {
  Json how = {{"xtape", XTAPE_VERSION},
              {"instruction set", name_of(instruction_set())},
              {"threads", std::to_string(player.threads())}};
  for (const auto& [name, value] : play) how[name] = value;
  std::string text = "{\n\"format\": " + Json(digests_format).dump() +
                     ",\n\"version\": " + std::to_string(digests_version) + ",\n\"play\": " + how.dump() +
                     ",\n\"digests\": [";
  const char* separator = "\n";
  for (const Digest& each : player.digests()) {
    const Json line = {{"node", each.node}, {"output", each.output}, {"op", each.op},
                       {"type", each.type}, {"site", each.site},     {"hash", hexadecimal(each.hash)}};
    text += separator + line.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n";
  }
  write_file(path, text + "\n]\n}\n");
}

DigestFile load_digests(const std::string& path) {
  const JsonNode root(read_file(path), path, JsonErrors::file);
  if (!root.has("format") || !root.at("format").is_string() || root.at("format").text() != digests_format)
    root.fail(std::string("this is not a file of digests: its \"format\" must be \"") + digests_format + "\"");
  root.at("version").integer(1, digests_version);
  DigestFile file;
  for (const auto& [name, value] : root.at("play").entries()) file.play.emplace_back(name, value.text());
  for (const JsonNode& line : root.at("digests").elements())
    file.digests.push_back({line.at("node").text(), static_cast<int>(line.at("output").integer(0, INT32_MAX)),
                            line.at("op").text(), line.at("site").text(), line.at("type").text(),
                            bits_of(line.at("hash"))});
  return file;
}

}  // namespace xtape::cli
