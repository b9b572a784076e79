#include <algorithm>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "data/tables/fields.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/chats.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
/// Returns the text without white space at its ends, as Python's str.strip.
std::string stripped(const std::string& text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at, length = character_length(text, at);
    const char32_t character = length == 0 ? U'\uFFFD' : next_character(text, at);
    at = first + std::max<std::size_t>(1, length);
    if (is_white_space(character) || (character >= 0x1C && character <= 0x1F)) continue;
    begin = std::min(begin, first);
    end = at;
  }
  return begin < end ? text.substr(begin, end - begin) : "";
}
}  // namespace

/// A piece of a chat: a special token, or text.
struct ChatTemplate::Part {
  std::string text;  // of a special token: its name, "{start}" or "{end}"
  bool special;
  bool answer;
};

ChatTemplate::ChatTemplate(const std::string& json, const std::string& name) : json_(json) {
  const JsonNode root(json, name, JsonErrors::file);
  root.only({"xtape", "name", "about", "tokens", "trim", "alternates", "begin", "end", "system", "system_in_user",
             "user", "assistant", "published"});
  name_ = root.at("name").text();
  for (const auto& [key, list] : {std::pair("tokens", &special_), {"published", &published_}})
    if (root.has(key))
      for (const JsonNode& each : root.at(key).elements()) list->push_back(each.text());
  for (const JsonNode& each : root.has("tokens") ? root.at("tokens").elements() : std::vector<JsonNode>())
    if (each.text().empty()) each.fail("the text of a special token must not be empty");
  trim_ = flag_of(root, "trim", false);
  alternates_ = flag_of(root, "alternates", false);
  begin_ = text_of(root, "begin", "");
  end_ = text_of(root, "end", "");
  const auto message = [](const JsonNode& owner, const char* key) {
    const JsonNode node = owner.at(key);
    if (node.text().find("{content}") == std::string::npos) node.fail("the text must have a place {content}");
    return node.text();
  };
  user_ = message(root, "user");
  if (root.has("system")) system_ = message(root, "system");
  if (root.has("system_in_user")) in_user_ = message(root, "system_in_user");
  const JsonNode assistant = root.at("assistant");
  assistant.only({"before", "answer", "after"});
  answer_ = message(assistant, "answer");
  before_ = text_of(assistant, "before", "");
  after_ = text_of(assistant, "after", "");
}

bool ChatTemplate::is_published_as(const std::string& jinja) const {
  // Folders write line breaks in Jinja's strings as such, or as \n.
  const auto compared = [](std::string text) {
    for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) text.replace(at, 2, "\n");
    return stripped(text);
  };
  return std::ranges::any_of(published_, [&](const std::string& each) { return compared(each) == compared(jinja); });
}

/// Returns the parts of a text of the template, in which `content` replaces {content}.
std::vector<ChatTemplate::Part> ChatTemplate::parts(const std::string& text, const std::string& content,
                                                    bool answer) const {
  std::vector<std::string> marks = special_;
  marks.insert(marks.end(), {"{start}", "{end}", "{content}"});
  std::vector<Part> made;
  const auto add_text = [&](const std::string& more) {
    if (more.empty()) return;
    if (made.empty() || made.back().special) made.push_back({"", false, answer});
    made.back().text += more;
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = text.size();
    const std::string* mark = nullptr;
    for (const std::string& each : marks)
      if (const std::size_t found = text.find(each, at); found < next) {
        next = found;
        mark = &each;
      }
    add_text(text.substr(at, next - at));
    if (mark == nullptr) break;
    if (*mark == "{content}")
      add_text(content);
    else
      made.push_back({*mark, true, answer});
    at = next + mark->size();
  }
  return made;
}

/// Returns the parts of a whole chat.
std::vector<ChatTemplate::Part> ChatTemplate::parts(const Chat& chat) const {
  if (chat.empty()) throw Error("the chat has no messages");
  std::vector<Part> made = parts(begin_, "", false);
  const auto add = [&](const std::string& text, const std::string& content, bool answer) {
    for (Part& part : parts(text, content, answer)) made.push_back(std::move(part));
  };
  std::string first;  // a system message that belongs into the first message of the user
  bool answers = false;
  for (std::size_t i = 0; i < chat.size(); ++i) {
    const auto& [role, content] = chat[i];
    const auto fail = [&, which = i + 1](const std::string& message) {
      throw Error("message " + std::to_string(which) + ": " + message);
    };
    const bool system = role == "system";
    if (!system && role != "user" && role != "assistant")
      fail("the role must be \"system\", \"user\" or \"assistant\", not " + shown(role));
    if (system && system_.empty() && in_user_.empty()) fail("template '" + name_ + "' has no role \"system\"");
    if (system && i > 0 && (alternates_ || system_.empty()))
      fail("template '" + name_ + "' has the role \"system\" only in the first message");
    if (alternates_ && !system && (role == "assistant") != answers)
      fail("template '" + name_ + "' needs messages of user and assistant in turn, from one of the user");
    const std::string text = first + content, trimmed = trim_ ? stripped(text) : text;
    if (system && system_.empty()) {
      for (const Part& part : parts(in_user_, content, false)) first += part.text;
      continue;
    }
    if (system) {
      add(system_, trimmed, false);
    } else if (role == "user") {
      add(user_, trimmed, false);
      first.clear();
    } else {
      add(before_, "", false);
      add(answer_, trimmed, true);
      add(after_, "", false);
    }
    if (!system) answers = !answers;
  }
  if (!first.empty()) throw Error("the chat has no message of the user, which template '" + name_ + "' needs");
  return made;
}

/// Encodes parts with a tokenizer. Adjacent texts are encoded as one text.
class ChatTemplate::Encoder {
 public:
  Encoder(const ChatTemplate& chats, const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    for (const std::string& each : chats.special_) names_.push_back({each, token_of(each, chats.name_)});
    for (const std::int32_t token : {tokenizer.start(), tokenizer.end()})
      if (token >= 0) names_.push_back({tokenizer.pieces({token})[0], token});
    names_.push_back({"{start}", tokenizer.start()});
    names_.push_back({"{end}", tokenizer.end()});
  }

  ChatTokens encode(const std::vector<Part>& parts) {
    for (const Part& part : parts) {
      if (!part.special) {
        if (texts_.empty() || texts_.back().answer != part.answer) texts_.push_back({"", false, part.answer});
        texts_.back().text += part.text;
        continue;
      }
      add_texts();
      const std::int32_t token = named(part.text);
      if (token < 0)
        throw Error("the tokenizer has no " + std::string(part.text == "{start}" ? "start" : "end") +
                    " token, which the chat template needs");
      add({token}, part.answer);
    }
    add_texts();
    return std::move(made_);
  }

  std::int32_t named(const std::string& name) const {
    return std::ranges::find_if(names_, [&](const auto& each) { return each.first == name; })->second;
  }

 private:
  std::int32_t token_of(const std::string& text, const std::string& chats) const {
    const std::int32_t token = tokenizer_.token_of(text);
    if (token < 0)
      throw Error("the tokenizer has no token '" + text + "', which the chat template '" + chats + "' needs");
    return token;
  }

  void add(const Tokens& tokens, bool answer) {
    made_.tokens.insert(made_.tokens.end(), tokens.begin(), tokens.end());
    made_.answers.resize(made_.tokens.size(), answer);
  }

  /// Adds the texts since the last special token. A model continues the tokens of a prompt. So where an answer begins,
  /// they must be the first tokens of the whole text; otherwise the texts are encoded one by one.
  void add_texts() {
    std::string text;
    std::vector<std::size_t> ends;  // in tokens, by text
    Tokens last;
    bool whole = true;
    for (const Part& part : texts_) {
      text += part.text;
      Tokens tokens = plain(text);
      whole = whole && tokens.size() >= last.size() && std::equal(last.begin(), last.end(), tokens.begin());
      last = std::move(tokens);
      ends.push_back(last.size());
    }
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const auto begin = last.begin() + static_cast<std::ptrdiff_t>(i == 0 ? 0 : ends[i - 1]);
      add(whole ? Tokens(begin, last.begin() + static_cast<std::ptrdiff_t>(ends[i])) : plain(texts_[i].text),
          texts_[i].answer);
    }
    texts_.clear();
  }

  bool has_special(const Tokens& tokens) const {
    return std::ranges::any_of(names_,
                               [&](const auto& each) { return each.second >= 0 && contains(tokens, each.second); });
  }

  /// Encodes a text without special tokens. If the tokenizer makes one of a part of the text, this part is cut behind
  /// its first character, so that no piece has all of it.
  Tokens plain(const std::string& text) const {
    Tokens tokens = tokenizer_.encode(text);
    if (!has_special(tokens)) return tokens;
    tokens.clear();
    std::size_t begin = 0;
    const auto add = [&](std::size_t end) {
      const Tokens more = tokenizer_.encode(text.substr(begin, end - begin));
      tokens.insert(tokens.end(), more.begin(), more.end());
      begin = end;
    };
    for (std::size_t at = 0; at < text.size(); ++at)
      for (const auto& [name, token] : names_)
        if (begin <= at && name.size() > 1 && text.compare(at, name.size(), name) == 0) add(at + 1);
    add(text.size());
    if (has_special(tokens)) throw Error("the tokenizer makes a special token of a text in a message");
    return tokens;
  }

  const Tokenizer& tokenizer_;
  std::vector<std::pair<std::string, std::int32_t>> names_;  // the special tokens
  std::vector<Part> texts_;                                  // since the last special token
  ChatTokens made_;
};

ChatTokens ChatTemplate::encode(const Tokenizer& tokenizer, const Chat& chat) const {
  std::vector<Part> all = parts(chat);
  for (Part& part : parts(end_, "", false)) all.push_back(std::move(part));
  return Encoder(*this, tokenizer).encode(all);
}

Tokens ChatTemplate::prompt(const Tokenizer& tokenizer, const Chat& chat) const {
  std::vector<Part> all = parts(chat);
  for (Part& part : parts(before_, "", false)) all.push_back(std::move(part));
  return Encoder(*this, tokenizer).encode(all).tokens;
}

std::int32_t ChatTemplate::end_of_answer(const Tokenizer& tokenizer) const {
  const std::vector<Part> answer = parts(answer_, "", true);
  return answer.empty() || !answer.back().special ? -1 : Encoder(*this, tokenizer).named(answer.back().text);
}

}  // namespace xtape
