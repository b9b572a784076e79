/// Tokens in files: read where they are needed, written as they are made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/system/files.hpp"
#include "xtape/text.hpp"

namespace xtape {

struct TokenFileOptions {
  /// The type of the tokens of a raw file: "uint8", "uint16", "uint32", "int32" or "int64", little-endian. "": the file
  /// says it.
  std::string type;
  std::int64_t skip = 0;  ///< The bytes before the tokens of a raw file.
};

/// Returns whether a file begins as a token file that says its type: an .npy file, or one of llm.c.
bool is_token_file(const std::string& path);

/// Opens a token file. An .npy file has one axis of integers. A file of llm.c has a header of 1024 bytes. Other files
/// need TokenFileOptions::type. Throws FileError if the file is damaged or truncated, or if its length does not fit.
std::shared_ptr<const TokenSequence> open_tokens(const std::string& path, const TokenFileOptions& options = {});

/// What a file of tokens has.
struct TokenFacts {
  std::uint64_t checksum = 0;        ///< Of the tokens as int64, so that it is the same for all types of files.
  std::int64_t least = 0, most = 0;  ///< The range of the tokens. 0 if there are none.
  std::int64_t place = 0;            ///< The index of `most`, or of `least` if that is below 0.
};
/// Reads all tokens. `name` is that of the file in reports, which begin as InputWatch says.
TokenFacts facts_of(const TokenSequence& tokens, const std::string& name);

/// Returns the tokens [begin, end) of sequences that follow each other.
std::shared_ptr<const TokenSequence> part_of_joined(std::vector<std::shared_ptr<const TokenSequence>> parts,
                                                    std::int64_t begin, std::int64_t end);

/// Tokens while they are made: in memory, and in an .npy file as soon as they are many. Its type is the smallest of
/// uint8, uint16 and int32 that holds the vocabulary.
class TokenWriter {
 public:
  static constexpr std::size_t usually_held = std::size_t{16} << 20;  ///< Tokens.
  /// `path` is the file, whose folder is made if it is missing. "": a temporary file without a name. Up to `held`
  /// tokens stay in memory.
  TokenWriter(std::string path, std::int64_t vocabulary, std::size_t held = usually_held);
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;
  /// Throws FileError if the file cannot be written.
  void add(const std::int32_t* tokens, std::size_t count);
  bool is_in_file() const { return file_ != nullptr; }
  /// Ends the file. Returns the tokens, to which nothing can be added.
  std::shared_ptr<const TokenSequence> finish();

 private:
  void write_out();
  std::string header() const;

  std::string path_;
  bool is_temporary_;
  int bytes_;  // of a token in the file
  std::size_t most_held_;
  std::int64_t written_ = 0;
  Tokens held_;
  std::unique_ptr<ReplacedFile> file_;
};

}  // namespace xtape
