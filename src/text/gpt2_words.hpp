/// How GPT-2 cuts text into words before it merges bytes within them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace xtape {

/// The words of a text one after the other, nothing between them: contractions, and letters, numbers or other marks in
/// a row, each with a space before it or none; white space. Bytes that are not UTF-8 count as marks. The text must
/// outlive it.
class Gpt2Words {
 public:
  explicit Gpt2Words(std::string_view text);
  ~Gpt2Words();
  Gpt2Words(const Gpt2Words&) = delete;
  Gpt2Words& operator=(const Gpt2Words&) = delete;
  /// Empty behind the last one.
  std::string_view next();

 private:
  struct Match;
  std::string_view text_;
  std::string masked_;     // the text with a mark for each byte that is not UTF-8; empty where all of it is
  std::string_view seen_;  // the one of the two that the pattern is matched with
  std::size_t at_ = 0;
  std::unique_ptr<Match> match_;
};

}  // namespace xtape
