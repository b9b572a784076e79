/// Chats: conversations of several messages, and the templates that turn them into tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xtape/tokenizers.hpp"

namespace xtape {

/// A message of a chat. The roles that templates know are "system", "user" and "assistant".
struct ChatMessage {
  std::string role;
  std::string content;
};
using Chat = std::vector<ChatMessage>;

/// The tokens of a chat.
struct ChatTokens {
  Tokens tokens;
  /// For each token: whether it belongs to an answer, that is, to a message of the assistant with its end. Models learn
  /// to predict answers alone.
  std::vector<bool> answers;
};

/// What a model reads before, between and after the messages of a chat. A template is a JSON file;
/// models/chat_templates has those of published models.
///
/// The text of a template has two kinds of places. `{content}` is the message. Special tokens are those named in
/// "tokens", and `{start}` and `{end}`, the start and end token of the tokenizer. Nothing in a message becomes a
/// special token: a message with the text of one is encoded as ordinary text.
class ChatTemplate {
 public:
  /// Reads the text of a template. Errors use `name` as the name of the file. Throws FileError with the line if an
  /// entry is missing or unknown.
  explicit ChatTemplate(const std::string& json, const std::string& name = "chat template");

  const std::string& name() const { return name_; }
  /// The texts of the special tokens besides start and end.
  const std::vector<std::string>& special_tokens() const { return special_; }
  /// Whether this is the template that the Jinja text "chat_template" of a published folder describes. The text must be
  /// one of those that the template lists, apart from white space at the ends.
  bool is_published_as(const std::string& jinja) const;
  /// Returns the special token that ends an answer, or -1 if a text ends it.
  std::int32_t end_of_answer(const Tokenizer& tokenizer) const;

  /// Returns the tokens of a chat. Text between special tokens is encoded as one text. Throws Error if there is no
  /// message, the template has no such role or another order of roles, or the tokenizer lacks a special token. Errors
  /// of `Tokenizer::encode` propagate.
  ChatTokens encode(const Tokenizer& tokenizer, const Chat& chat) const;
  /// Returns the tokens of a chat that the assistant is to continue, with those that begin its answer.
  Tokens prompt(const Tokenizer& tokenizer, const Chat& chat) const;

  const std::string& to_json() const { return json_; }  ///< The text from which the constructor read.

 private:
  struct Part;
  class Encoder;
  std::vector<Part> parts(const std::string& text, const std::string& content, bool answer) const;
  std::vector<Part> parts(const Chat& chat) const;

  std::string json_, name_;
  std::vector<std::string> special_, published_;
  bool trim_ = false, alternates_ = false;
  std::string begin_, end_, system_, user_, in_user_;  // in_user_: a system message in the first message of the user
  std::string before_, answer_, after_;                // of the assistant
};

}  // namespace xtape
