#include "train/run/ledger.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes/encodings.hpp"
#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "tape/tape_json.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

namespace {
constexpr const char* first_key = "{\"ledger\":";
constexpr std::int64_t format = 1;
constexpr std::int64_t most_steps = std::int64_t{1} << 62;

std::uint64_t bits(double number) {
  return std::bit_cast<std::uint64_t>(std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number);
}

/// Calls take(line, number) for each complete line, with its line feed.
template <class Take>
void for_each_line(const std::string& text, const Take& take) {
  std::int64_t number = 0;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    take(text.substr(at, end + 1 - at), ++number);
}

// Seals.

constexpr const char* seal_key = ",\"seal\":\"";
constexpr std::size_t digest_digits = 32;

/// Returns the line, which ends with its brace, with the seal of itself and the lines before it.
std::string sealed_line(const std::string& unsealed, const std::string& line) {
  return line.substr(0, line.size() - 1) + seal_key + digest_of({unsealed + line}) + "\"}";
}

/// Returns the line without its seal, or nothing if it has none. `line` ends with a line feed.
std::optional<std::string> without_seal(const std::string& line) {
  const std::size_t length = std::string(seal_key).size() + digest_digits + 3;  // with the quote, brace and line feed
  if (line.size() < length || line.compare(line.size() - length, std::string(seal_key).size(), seal_key) != 0)
    return {};
  return line.substr(0, line.size() - length) + "}";
}

// Lines as JSON.

Json json_of(const FileDigests& files) {
  Json list = Json::array();
  for (const auto& [name, digest] : files) list.push_back(Json::array({name, digest}));
  return list;
}

FileDigests files_of(const JsonNode& list) {
  FileDigests files;
  for (const JsonNode& each : list.elements()) {
    const std::vector<JsonNode> both = each.elements();
    if (both.size() != 2) each.fail("a name and a digest");
    files.emplace_back(both[0].text(), both[1].text());
  }
  return files;
}

Json json_of(const LedgerSession& session) {
  return {{"ledger", format},           {"begin", session.step},
          {"version", session.version}, {"instruction_set", session.instruction_set},
          {"weights", session.weights}, {"files", json_of(session.files)},
          {"data", session.data},       {"data_files", json_of(session.data_files)}};
}

LedgerSession session_of(const JsonNode& line) {
  line.at("ledger").integer(format, format);
  return {line.at("begin").integer(0, most_steps), line.at("weights").text(),  line.at("version").text(),
          line.at("instruction_set").text(),       files_of(line.at("files")), line.at("data").text(),
          files_of(line.at("data_files"))};
}

void add_line(const JsonNode& line, LedgerContent& content) {
  std::int64_t step = 0;
  if (line.has("begin")) {
    step = content.sessions.emplace_back(session_of(line)).step;
  } else if (line.has("update")) {
    step = line.at("update").integer(1, most_steps);
    content.updates[step] = {bits_of(line.at("loss")), bits_of(line.at("norm"))};
  } else {
    step = line.at("checkpoint").integer(0, most_steps);
    content.checkpoints.push_back({step, line.at("weights").text(), files_of(line.at("files"))});
  }
  if (line.has("weights")) content.weights[step] = line.at("weights").text();
}

LedgerContent content_of(const std::string& text, const std::string& path) {
  LedgerContent content;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    try {
      add_line(JsonNode(line, path, JsonErrors::file), content);
    } catch (const FileError&) {
      throw FileError(path + ", line " + std::to_string(number) + ": this is not a line of a ledger");
    }
  });
  if (content.sessions.empty()) throw FileError(path + " is not a ledger: it does not begin with " + first_key);
  return content;
}

/// Returns whether a training that continues after update `step` keeps the line. A line that is damaged goes; the next
/// seal tells of it.
bool is_kept(const std::string& line, std::int64_t step) {
  LedgerContent one;
  try {
    add_line(JsonNode(line, "", JsonErrors::file), one);
  } catch (const FileError&) {
    return false;
  }
  if (!one.sessions.empty()) return one.sessions[0].step < step;
  return (one.checkpoints.empty() ? one.last_update() : one.checkpoints[0].step) <= step && step > 0;
}
}  // namespace

LedgerUpdate LedgerUpdate::of(const StepReport& report) {
  return {bits(report.loss), bits(report.norm)};
}

bool LedgerSession::trains_like(const LedgerSession& other) const {
  return data == other.data &&
         std::ranges::all_of(files, [&](const auto& file) { return contains(other.files, file); });
}

bool is_ledger(const std::string& path) {
  const OpenFile file(path);
  std::string begin(std::min<std::size_t>(std::string(first_key).size(), file.size()), '\0');
  file.read(0, begin.data(), begin.size());
  return begin == first_key;
}

LedgerContent read_ledger(const std::string& path) {
  if (!is_folder(path)) return content_of(read_text(path), path);
  const std::string file = path_in(path, ledger_file);
  if (!path_exists(file))
    throw FileError(path + " has no " + ledger_file +
                    ": it was not trained, or by an earlier version of xtape; a further training begins a ledger");
  return read_ledger(file);
}

std::string broken_seal(const std::string& path) {
  std::string unsealed, found;
  std::int64_t first = 1;
  for_each_line(read_text(path), [&](const std::string& line, std::int64_t number) {
    const std::optional<std::string> bare = found.empty() ? without_seal(line) : std::nullopt;
    if (!bare) {
      unsealed += line;
      return;
    }
    if (sealed_line(unsealed, *bare) + "\n" != line)
      found = path + ", " + (first == number ? "line " : "lines " + std::to_string(first) + " to ") +
              std::to_string(number) + ": the digest in line " + std::to_string(number) +
              " is of another text: the ledger has been changed";
    unsealed = line;
    first = number + 1;
  });
  return found;
}

FileDigests digests_in(const std::string& folder) {
  FileDigests files;
  for (const std::string& name : names_in(folder)) {
    const std::string path = path_in(folder, name);
    const auto ends = [&](const char* ending) { return name.ends_with(ending); };
    if (std::ranges::any_of(std::array{".json", ".safetensors", ".model", ".txt"}, ends) && is_plain_file(path))
      files.emplace_back(name, digest_of_file(path));
  }
  std::ranges::sort(files);
  return files;
}

Ledger::Ledger(const std::string& directory, const LedgerSession& session)
    : file_(cut_back(path_in(directory, ledger_file), session)) {
  if (!continues_) write(json_of(session).dump(), true);
}

const std::string& Ledger::cut_back(const std::string& path, const LedgerSession& session) {
  if (!path_exists(path)) return path;
  const std::string text = read_text(path);
  std::string kept;
  for_each_line(text, [&](const std::string& line, std::int64_t) {
    if (!is_kept(line, session.step)) return;
    kept += line;
    unsealed_ = without_seal(line) ? line : unsealed_ + line;
  });
  if (kept != text) write_file(path, kept);
  if (kept.empty()) return path;
  const LedgerContent content = content_of(kept, path);
  const LedgerSession& last = content.sessions.back();
  continues_ = last.trains_like(session) && last.version == session.version &&
               last.instruction_set == session.instruction_set && last.data_files == session.data_files;
  if (!content.checkpoints.empty()) last_checkpoint_ = content.checkpoints.back().step;
  return path;
}

void Ledger::add(std::int64_t step, const LedgerUpdate& update, const std::string& weights) {
  std::string line(96, '\0');
  line.resize(std::snprintf(line.data(), line.size(), R"({"update":%lld,"loss":"%016llx","norm":"%016llx")",
                            static_cast<long long>(step), static_cast<unsigned long long>(update.loss),
                            static_cast<unsigned long long>(update.norm)));
  if (!weights.empty()) line += ",\"weights\":\"" + weights + "\"";
  write(line + "}", !weights.empty());
}

void Ledger::add(const LedgerCheckpoint& checkpoint) {
  const Json line = {
      {"checkpoint", checkpoint.step}, {"weights", checkpoint.weights}, {"files", json_of(checkpoint.files)}};
  write(line.dump(), true);
  file_.flush();
  last_checkpoint_ = checkpoint.step;
}

void Ledger::write(std::string line, bool sealed) {
  if (sealed) line = sealed_line(unsealed_, line);
  line += '\n';
  pending_ += line;
  unsealed_ += line;
  if (!sealed) return;
  file_.write(pending_);
  pending_.clear();
  unsealed_ = line;
}

}  // namespace xtape::train
