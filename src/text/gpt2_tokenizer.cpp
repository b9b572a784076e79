#include <array>
#include <limits>
#include <mutex>

#include "byte_symbols.hpp"
#include "crc32.hpp"
#include "gpt2_words.hpp"
#include "json_text.hpp"
#include "merges.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

constexpr const char* end_of_text = "<|endoftext|>";

/// Tokens of words that have been seen. Long words come seldom again, and are left out.
class SeenWords {
 public:
  const Tokens* find(std::string_view word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? nullptr : &found->second;
  }
  void add(std::string_view word, const Tokens& tokens) {
    if (word.size() > 64) return;
    if (words_.size() >= 1 << 17) words_.clear();
    words_.emplace(word, tokens);
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Tokens, Hash, std::equal_to<>> words_;
};

/// Does `read`; its errors name the file.
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

/// The pieces of a vocabulary file by their tokens.
std::vector<std::string> read_vocabulary(const std::string& text, const std::string& path) {
  const JsonNode json(text, path, JsonErrors::file);
  if (!json.is_object() || json.json().empty())
    json.fail("a vocabulary is an object that gives every piece its token: {\"!\": 0, \"\\\"\": 1, …}");
  const auto entries = json.entries();
  if (entries.size() > std::numeric_limits<std::int32_t>::max()) json.fail("there are too many pieces");
  std::vector<std::string> pieces(entries.size());
  std::vector<bool> given(entries.size());
  for (const auto& entry : entries) {
    const std::string& piece = entry.first;
    const JsonNode& token = entry.second;
    const auto named = [&] { return "the token of " + Json(piece).dump() + " is " + token.json().dump(); };
    if (!token.json().is_number_unsigned() || token.json().get<std::uint64_t>() >= entries.size())
      token.fail(named() + "; the tokens of " + std::to_string(entries.size()) + " pieces are the numbers from 0 to " +
                 std::to_string(entries.size() - 1));
    const std::size_t number = token.json();
    if (given[number]) token.fail(named() + ", which is that of " + Json(pieces[number]).dump() + " as well");
    given[number] = true;
    pieces[number] = piece;
  }
  return pieces;
}

}  // namespace

struct Gpt2Tokenizer::Data {
  std::string vocabulary_file, merges_file;  // as they were read, to be saved
  std::vector<std::string> pieces;           // by token, as they are written
  std::vector<std::string> bytes;            // by token
  std::array<std::int32_t, 256> of_byte{};
  Merges merges;
  std::int32_t end = -1;
  mutable std::mutex seen_mutex;
  mutable SeenWords seen;

  void read_pieces(const std::string& path) {
    pieces = read_vocabulary(vocabulary_file, path);
    const auto tokens = by_piece();
    for (int byte = 0; byte < 256; ++byte) {
      const std::string& symbol = symbol_of(static_cast<std::uint8_t>(byte));
      const auto found = tokens.find(symbol);
      if (found == tokens.end())
        throw Error("there is no piece \"" + symbol + "\", which stands for the byte " + std::to_string(byte) +
                    ": without it not every text can be encoded");
      of_byte[static_cast<std::size_t>(byte)] = found->second;
    }
    for (const std::string& piece : pieces) bytes.push_back(bytes_of_symbols(piece));
    if (const auto found = tokens.find(end_of_text); found != tokens.end()) end = found->second;
  }

  void read_merges() {
    const auto tokens = by_piece();
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < merges_file.size();) {
      const std::size_t newline = std::min(merges_file.find('\n', begin), merges_file.size());
      std::string line = merges_file.substr(begin, newline - begin);
      begin = newline + 1;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (++number == 1 && line.rfind("#version", 0) == 0) continue;
      const auto fail = [&](const std::string& message) {
        throw Error("line " + std::to_string(number) + ": " + message);
      };
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || space == 0 || space + 1 == line.size() || line.rfind(' ') != space)
        fail("a merge is two pieces with a space between them, not \"" + line + "\"");
      const auto token_of = [&](const std::string& piece) {
        const auto found = tokens.find(piece);
        if (found == tokens.end()) fail("the vocabulary has no piece \"" + piece + "\"");
        return found->second;
      };
      const std::string left = line.substr(0, space), right = line.substr(space + 1);
      const std::int32_t first = token_of(left), second = token_of(right);
      if (!merges.add(first, second, token_of(left + right))) fail("the merge \"" + line + "\" comes again");
    }
  }

  std::unordered_map<std::string_view, std::int32_t> by_piece() const {
    std::unordered_map<std::string_view, std::int32_t> tokens;
    for (std::size_t i = 0; i < pieces.size(); ++i) tokens.emplace(pieces[i], static_cast<std::int32_t>(i));
    return tokens;
  }

  void append(Tokens& tokens, std::string_view text, SeenWords& words) const {
    Gpt2Words cut(text);
    for (std::string_view word; !(word = cut.next()).empty();) {
      const Tokens* known = words.find(word);
      if (known != nullptr) {
        tokens.insert(tokens.end(), known->begin(), known->end());
        continue;
      }
      Tokens made;
      made.reserve(word.size());
      for (const char byte : word) made.push_back(of_byte[static_cast<unsigned char>(byte)]);
      merges.apply(made);
      tokens.insert(tokens.end(), made.begin(), made.end());
      words.add(word, made);
    }
  }
};

Gpt2Tokenizer::Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options)
    : options_(options) {
  const auto data = std::make_shared<Data>();
  data->vocabulary_file = read_text(vocabulary);
  data->merges_file = read_text(merges);
  of_file(vocabulary, [&] { data->read_pieces(vocabulary); });
  of_file(merges, [&] { data->read_merges(); });
  if (options_.end_in_text && data->end < 0)
    throw FileError(vocabulary + ": there is no piece \"" + end_of_text + "\" to be found in texts");
  data_ = data;
}

std::int64_t Gpt2Tokenizer::size() const {
  return static_cast<std::int64_t>(data_->pieces.size());
}

Tokens Gpt2Tokenizer::encode(const std::string& text) const {
  // Where another thread is at the words that all know, this call keeps its own.
  const std::unique_lock<std::mutex> lock(data_->seen_mutex, std::try_to_lock);
  SeenWords own;
  SeenWords& words = lock ? data_->seen : own;
  Tokens tokens;
  std::string_view rest = text;
  if (options_.end_in_text) {
    const std::string_view mark = end_of_text;
    for (std::size_t found = 0; (found = rest.find(mark)) != std::string_view::npos;) {
      data_->append(tokens, rest.substr(0, found), words);
      tokens.push_back(data_->end);
      rest.remove_prefix(found + mark.size());
    }
  }
  data_->append(tokens, rest, words);
  return tokens;
}

std::string Gpt2Tokenizer::decode(const Tokens& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    check_token(token);
    if (token != data_->end) text += data_->bytes[static_cast<std::size_t>(token)];
  }
  return text;
}

std::vector<std::string> Gpt2Tokenizer::pieces(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    check_token(token);
    pieces.push_back(data_->pieces[static_cast<std::size_t>(token)]);
  }
  return pieces;
}

std::int32_t Gpt2Tokenizer::end() const {
  return data_->end;
}

std::string Gpt2Tokenizer::to_json() const {
  // The pieces are in the files; what stands here tells other files, or a part of these, from them.
  const Json json = {{"xtape", 1},
                                       {"kind", "gpt2"},
                                       {"pieces", size()},
                                       {"end_in_text", options_.end_in_text},
                                       {"vocab_crc32", crc32_of(data_->vocabulary_file)},
                                       {"merges_crc32", crc32_of(data_->merges_file)}};
  return json.dump(2) + "\n";
}

std::vector<TokenizerFile> Gpt2Tokenizer::files(const std::string&) const {
  return {{"vocab.json", data_->vocabulary_file}, {"merges.txt", data_->merges_file}};
}

}  // namespace xtape
