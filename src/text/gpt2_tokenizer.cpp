#include <limits>
#include <nlohmann/json.hpp>

#include "byte_pairs.hpp"
#include "crc32.hpp"
#include "held.hpp"
#include "json_text.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

constexpr const char* end_of_text = "<|endoftext|>";

/// Calls `read` and adds the file's path to its errors.
template <class Read>
void of_file(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(path + ": " + error.what());
  }
}

/// The pieces of a vocabulary file, indexed by token.
std::vector<std::string> read_vocabulary(const std::string& text, const std::string& path) {
  const JsonNode json(text, path, JsonErrors::file);
  if (!json.is_object() || json.json().empty())
    json.fail("a vocabulary must be an object of pieces and their tokens: {\"!\": 0, \"\\\"\": 1, …}");
  const auto entries = json.entries();
  if (entries.size() > std::numeric_limits<std::int32_t>::max()) json.fail("there are too many pieces");
  std::vector<std::string> pieces(entries.size());
  std::vector<bool> given(entries.size());
  for (const auto& entry : entries) {
    const std::string& piece = entry.first;
    const JsonNode& token = entry.second;
    const auto named = [&] { return "the token of " + Json(piece).dump() + " is " + token.json().dump(); };
    if (!token.json().is_number_unsigned() || token.json().get<std::uint64_t>() >= entries.size())
      token.fail(named() + "; the tokens of " + std::to_string(entries.size()) + " pieces must be the numbers 0 to " +
                 std::to_string(entries.size() - 1));
    const std::size_t number = token.json();
    if (given[number]) token.fail(named() + ", but " + Json(pieces[number]).dump() + " has the same token");
    given[number] = true;
    pieces[number] = piece;
  }
  return pieces;
}

}  // namespace

struct Gpt2Tokenizer::Data {
  std::string vocabulary_file, merges_file;  // the contents of the files, for saving
  std::unique_ptr<BytePairs> pairs;
  std::int32_t end = -1;

  void read_merges() const {
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < merges_file.size();) {
      const std::size_t newline = std::min(merges_file.find('\n', begin), merges_file.size());
      std::string line = merges_file.substr(begin, newline - begin);
      begin = newline + 1;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (++number == 1 && line.rfind("#version", 0) == 0) continue;
      const std::string place = "line " + std::to_string(number) + ": ";
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || space == 0 || space + 1 == line.size() || line.rfind(' ') != space)
        throw Error(place + "a merge must be two pieces separated by a space, got \"" + line + "\"");
      try {
        pairs->add_merge(line.substr(0, space), line.substr(space + 1));
      } catch (const Error& error) {
        throw Error(place + error.what());
      }
    }
  }
};

Gpt2Tokenizer::Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options)
    : options_(options) {
  const auto data = std::make_shared<Data>();
  data->vocabulary_file = read_text(vocabulary);
  data->merges_file = read_text(merges);
  of_file(vocabulary,
          [&] { data->pairs = std::make_unique<BytePairs>(read_vocabulary(data->vocabulary_file, vocabulary)); });
  of_file(merges, [&] { data->read_merges(); });
  data->end = data->pairs->token_of(end_of_text);
  if (options_.end_in_text && data->end < 0)
    throw FileError(vocabulary + ": there is no piece \"" + end_of_text + "\", which end_in_text needs");
  if (options_.end_in_text) data->pairs->find_in_text(end_of_text, data->end);
  data_ = data;
}

std::int64_t Gpt2Tokenizer::size() const {
  return static_cast<std::int64_t>(held(data_).pairs->pieces().size());
}

Tokens Gpt2Tokenizer::encode(const std::string& text) const {
  return held(data_).pairs->encode(text);
}

std::string Gpt2Tokenizer::decode(const Tokens& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    check_token(token);
    if (token != held(data_).end) text += held(data_).pairs->bytes_of(token);
  }
  return text;
}

std::vector<std::string> Gpt2Tokenizer::pieces(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    check_token(token);
    pieces.push_back(held(data_).pairs->pieces()[static_cast<std::size_t>(token)]);
  }
  return pieces;
}

std::int32_t Gpt2Tokenizer::end() const {
  return held(data_).end;
}

std::string Gpt2Tokenizer::to_json() const {
  // The pieces themselves are in the files; the checksums detect files that are different or incomplete.
  const Json json = {{"xtape", 1},
                     {"kind", "gpt2"},
                     {"pieces", size()},
                     {"end_in_text", options_.end_in_text},
                     {"vocab_crc32", crc32_of(held(data_).vocabulary_file)},
                     {"merges_crc32", crc32_of(held(data_).merges_file)}};
  return json.dump(2) + "\n";
}

std::vector<TokenizerFile> Gpt2Tokenizer::files(const std::string&) const {
  return {{"vocab.json", held(data_).vocabulary_file}, {"merges.txt", held(data_).merges_file}};
}

}  // namespace xtape
