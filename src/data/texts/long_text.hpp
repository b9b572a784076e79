/// Texts of any size: files that are read as one stream, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xtape/text.hpp"

namespace xtape {

class TokenWriter;

/// The text of files, one after the other, or a part of it. A line end separates two files. A regular file is read
/// again whenever its text is needed, and must not change meanwhile. Other files, such as pipes, can be read only once,
/// so their text is kept in memory.
class LongText {
 public:
  void add(const std::string& path, const ReadOptions& options);
  /// Adds a text that is in memory, made of the file.
  void add_text(const std::string& path, std::string text);
  bool has_files() const { return !files_.empty(); }
  std::string names() const;  ///< The files, separated by commas.
  /// Divides a whole text at `fraction` of its characters: keeps the first part, and returns the other.
  LongText divide(double fraction);

  /// Gives the text to `take` in pieces. `verb` begins the reports of InputWatch. Throws the errors of read_text, and
  /// FileError if a file has changed since it was added.
  void read(const std::function<void(std::string_view piece)>& take, const char* verb = "reading") const;
  /// Like `read`, in pieces of about a megabyte that end with white space (of ASCII) or with the text. A longer word is
  /// in one piece.
  void read_words(const std::function<void(const std::string& piece)>& take) const;
  /// Returns the checksum of the text, which checksum_of would return for it.
  std::uint64_t checksum() const;

  /// Returns a text that differs if a file of this text has changed. "" if the text must be read to know.
  std::string identity() const;
  /// Notes the checksum of an unchanged text.
  void set_checksum(std::uint64_t checksum) { checksum_ = checksum; }

  /// Throws the error of `check` for the first line for which it throws, with the name of its file and its number.
  /// Lines have their ends. Throws Error `otherwise` if there is no such line.
  [[noreturn]] void fail_at_line(const std::function<void(const std::string& line)>& check,
                                 const std::string& otherwise) const;

 private:
  struct File {
    std::string path;
    ReadOptions options;
    std::string state;  // size and time of modification; "" for a text in memory
    std::shared_ptr<const std::string> text;
  };
  static void read_file(const File& file, const std::function<bool(std::string_view)>& take, const char* verb);
  void read_all(const std::function<bool(std::string_view)>& take, const char* verb) const;
  std::uint64_t place_of_division() const;

  std::vector<File> files_;
  std::optional<double> fraction_;  // where the text is divided
  bool is_rest_ = false;            // whether this is the part after the division
  std::shared_ptr<std::optional<std::uint64_t>> place_ = std::make_shared<std::optional<std::uint64_t>>();
  mutable std::optional<std::uint64_t> checksum_;
};

/// Appends the tokens of a text to `tokens`. They are those of tokenizer.encode for the whole text, made in pieces of
/// two megabytes: a piece ends where the tokens of the text around it show that no token goes over its end. If there
/// is no such place, as in a word of many megabytes, the piece is longer. Throws Error with file and line if a line
/// cannot be encoded.
void encode_text(const Tokenizer& tokenizer, const LongText& text, TokenWriter& tokens);

/// Returns each character of the text once, in the order of the code points. Throws as fail_at_line if a line is not
/// UTF-8.
std::string characters_of(const LongText& text);

}  // namespace xtape
