/// Lines, words and sizes of batches of text.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes/encodings.hpp"
#include "xtape/text.hpp"

namespace xtape {

// Limits of the size of a batch, and the identity of a sequence of batches.

/// Throws Error if `rows` or `columns` is below 1, or if rows × columns is above most_batch_tokens.
inline void check_batch_size(std::int64_t rows, std::int64_t columns) {
  if (rows < 1 || columns < 1) throw Error("a batch must have at least one row of one token");
  if (rows > most_batch_tokens / columns)
    throw Error("a batch of " + std::to_string(rows) + " rows of " + std::to_string(columns) +
                " tokens is too large: the limit is " + std::to_string(most_batch_tokens) + " tokens");
}

/// Throws Error if validation batch `index` is not one of `count` batches.
inline void check_validation_index(std::int64_t index, std::int64_t count) {
  if (index < 0 || index >= count)
    throw Error("there is no validation batch " + std::to_string(index) + ", only " + std::to_string(count));
}

/// Returns a value of Batches::order for batches that the numbers determine.
inline std::uint64_t order_by(const std::vector<std::uint64_t>& numbers) {
  return checksum_of_pieces(numbers) >> 2 | 1;
}

// Texts as streams.

/// Takes the next piece of a text, and returns whether it wants more.
using TakesText = std::function<bool(std::string_view piece)>;
/// Gives the text of a file to `take` in pieces, as read_text reads it, but in bounded memory. `verb` begins the
/// reports of InputWatch. Errors are those of read_text.
void stream_text(const std::string& path, const ReadOptions& options, const TakesText& take,
                 const char* verb = "reading");

/// Returns tokens in memory as a sequence.
std::shared_ptr<const TokenSequence> held_tokens(Tokens tokens);

// The lines of a text.

/// Calls take(line) for each line, without its end, "\n" or "\r\n". The last line needs no end.
template <class Take>
void for_each_line(const std::string& text, const Take& take) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, newline - begin);
    if (line.ends_with('\r')) line.pop_back();
    take(std::move(line));
    begin = newline + 1;
  }
}

// Words with labels, one word per line.

inline bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

/// Returns whether a line separates sentences. Such a line is blank, or begins a document in the data of CoNLL-2003.
bool ends_sentence(const std::string& line, char delimiter);

/// Like fields_of, but the delimiter ' ' stands for any number of spaces and tabs.
std::vector<std::string> fields_of_word(const std::string& line, char delimiter, std::size_t most);

/// Throws Error if the text is not exactly one word in the sense of words_in.
void check_word(const std::string& text);

/// Returns the number of tokens that source_of puts before the first word.
inline std::size_t tokens_before(const Tokenizer& tokenizer) {
  return tokenizer.start() >= 0 || tokenizer.end() < 0 ? 1 : 0;
}

/// Throws Error if the tokenizer does not give exactly one token for each word. `tokens` is the number of tokens of a
/// sentence with `words` words, and includes the tokens that source_of adds.
void check_one_token_a_word(const Tokenizer& tokenizer, std::size_t tokens, std::size_t words);

// Reports files that are slow to read.

/// Watches the reading of a file during its lifetime. A thread reports how much has arrived, as described at
/// watch_inputs, from the first second if the file is large. Does nothing for a small regular file, or for a file that
/// does not exist. `verb` says what is done with the file: "reading".
class InputWatch {
 public:
  explicit InputWatch(const std::string& path, const char* verb = "reading");
  InputWatch(const InputWatch&) = delete;
  InputWatch& operator=(const InputWatch&) = delete;
  ~InputWatch();
  void add(std::size_t bytes) { bytes_ += bytes; }  ///< Reports that more bytes have arrived.

 private:
  void watch();

  std::string what_;  // the begin of a report, such as "reading data.fifo, a pipe: "
  std::string of_;    // " of 5.00 GiB" for a regular file
  double seconds_ = 0;
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

// The tokenization "13a" of BLEU.

/// Splits a line into words and punctuation by the rules of NIST's mteval-v13a, as sacreBLEU implements them. Throws
/// Error if the line is not UTF-8.
std::vector<std::string> words_13a(const std::string& line);

}  // namespace xtape
