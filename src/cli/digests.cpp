#include <nlohmann/json.hpp>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "base/threads/instruction_set.hpp"
#include "cli/recorded.hpp"
#include "tape/tape_json.hpp"

namespace xtape::cli {

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
