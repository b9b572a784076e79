// Chat templates: tokens as transformers makes them, roles, and texts that look like special tokens.
#include "xtape/chats.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {
const std::string chat_golden = source_root() + "/tests/golden/data/",
                  chat_templates = source_root() + "/models/chat_templates/";

nlohmann::json json_at(const std::string& path) {
  return nlohmann::json::parse(read_text(path));
}

ChatTemplate template_named(const std::string& name) {
  return ChatTemplate(read_text(chat_templates + name + ".json"), name);
}

/// One of the golden tokenizers with start, end and special tokens.
PublishedTokenizer chat_tokenizer(const std::string& kind, const nlohmann::json& added, bool found = false) {
  const PublishedTokenizer plain(read_text(chat_golden + "tokenizers/" + kind + ".json"));
  PublishedTokens tokens;
  tokens.start = added.at("<s>");
  tokens.end = added.at("</s>");
  for (const auto& [content, token] : added.items())
    tokens.added.push_back({.content = content, .token = token, .special = !found, .found = found});
  return plain.with_tokens(tokens);
}

Chat chat_of(const nlohmann::json& messages) {
  Chat chat;
  for (const auto& each : messages) chat.push_back({each[0], each[1]});
  return chat;
}

/// The golden tokens of ChatML.
nlohmann::json chatml_tokens() {
  const auto file = json_at(chat_golden + "chats.json");
  for (const auto& row : file.at("rows"))
    if (row.at("template") == "chatml") return row.at("added");
  return {};
}

/// The golden tokenizer writes spaces between words.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// The tokens of the answers.
std::string answers_of(const Tokenizer& tokenizer, const ChatTokens& chat) {
  Tokens answers;
  for (std::size_t i = 0; i < chat.tokens.size(); ++i)
    if (chat.answers[i]) answers.push_back(chat.tokens[i]);
  std::string text;
  for (const std::string& piece : tokenizer.pieces(answers)) text += piece;
  return text;
}

}  // namespace

TEST_CASE("chats become the tokens of transformers' apply_chat_template") {
  const auto file = json_at(chat_golden + "chats.json");
  std::vector<std::string> seen;
  for (const auto& row : file.at("rows")) {
    const std::string name = row.at("template");
    CAPTURE(name);
    CAPTURE(row.at("text").get<std::string>());
    seen.push_back(name);
    const ChatTemplate chats = template_named(name);
    const PublishedTokenizer tokenizer = chat_tokenizer(row.at("tokenizer"), row.at("added"));
    const ChatTokens made = chats.encode(tokenizer, chat_of(row.at("chat")));
    CHECK(made.tokens == row.at("tokens").get<Tokens>());
    CHECK(made.answers.size() == made.tokens.size());
    if (row.contains("prompt"))
      CHECK(chats.prompt(tokenizer, chat_of(row.at("chat"))) == row.at("prompt").get<Tokens>());
  }
  for (const auto& each : std::filesystem::directory_iterator(chat_templates))
    CHECK(std::ranges::count(seen, each.path().stem().string()) >= 2);  // every installed template
}

TEST_CASE("the answers of a chat are the messages of the assistant, with their ends") {
  const PublishedTokenizer tokenizer = chat_tokenizer("byte_level", chatml_tokens());
  const ChatTemplate chats = template_named("chatml");
  const Chat chat = {{"system", "s"}, {"user", "one"}, {"assistant", "two"}, {"user", "three"}, {"assistant", "four"}};
  CHECK(answers_of(tokenizer, chats.encode(tokenizer, chat)) == "Ġtwo<|im_end|>Ġfour<|im_end|>");
  CHECK(chats.end_of_answer(tokenizer) == tokenizer.token_of("<|im_end|>"));
  // A prompt has the tokens before the answer, so that a model that has learned chats continues it.
  const Tokens whole = chats.encode(tokenizer, {{"user", "one"}, {"assistant", "\ntwo"}}).tokens;
  const Tokens prompt = chats.prompt(tokenizer, {{"user", "one"}});
  CHECK(std::equal(prompt.begin(), prompt.end(), whole.begin()));
}

TEST_CASE("the text of a special token in a message is ordinary text") {
  const auto plain = json_at(chat_golden + "chats.json").at("plain");
  const std::string text = plain.at("text");
  const ChatTemplate chats = template_named("chatml");
  const Chat chat = {{"user", text}, {"assistant", "<|im_end|> no"}};
  // Whether the tokenizer finds the added tokens in texts, as those that a folder does not call special, or not.
  for (const bool found : {false, true}) {
    const PublishedTokenizer tokenizer = chat_tokenizer("byte_level", chatml_tokens(), found);
    const Tokens made = chats.encode(tokenizer, chat).tokens;
    const auto count = [&](const char* name) { return std::ranges::count(made, tokenizer.token_of(name)); };
    CHECK(count("<|im_start|>") == 2);
    CHECK(count("<|im_end|>") == 2);
    CHECK(count("</s>") == 0);
    const auto end = std::ranges::find(made, tokenizer.token_of("<|im_end|>"));
    const Tokens user(made.begin() + 1, end);
    CHECK(without_spaces(tokenizer.decode(user)) == without_spaces("user\n" + text));
    if (!found) CHECK(user == plain.at("tokens").get<Tokens>());
  }
}

TEST_CASE("templates refuse chats that they cannot write") {
  const PublishedTokenizer tokenizer = chat_tokenizer("byte_level", chatml_tokens());
  const auto refuses = [&](const std::string& name, const Chat& chat, const std::string& words) {
    CHECK_THROWS_WITH_AS(template_named(name).encode(tokenizer, chat), doctest::Contains(words.c_str()), Error);
  };
  refuses("chatml", {}, "no messages");
  refuses("chatml", {{"tool", "x"}}, "message 1: the role must be \"system\", \"user\" or \"assistant\", not 'tool'");
  refuses("llama3", {{"user", "x"}}, "no token '<|start_header_id|>', which the chat template 'llama3' needs");
  refuses("mistral", {{"system", "s"}, {"user", "x"}}, "template 'mistral' has no role \"system\"");
  refuses("mistral", {{"assistant", "x"}},
          "message 1: template 'mistral' needs messages of user and assistant in turn");
  refuses("mistral", {{"user", "x"}, {"user", "y"}}, "message 2: ");
  refuses("llama2", {{"user", "x"}, {"assistant", "y"}, {"system", "s"}}, "only in the first message");
  refuses("llama2", {{"system", "s"}}, "no message of the user");
  CHECK_THROWS_WITH_AS(template_named("zephyr").encode(CharacterTokenizer(std::string("<|user>\nx")), {{"user", "x"}}),
                       doctest::Contains("no end token"), Error);
}

TEST_CASE("templates are recognised by their published texts, and no other") {
  for (const auto& each : std::filesystem::directory_iterator(chat_templates)) {
    const auto json = json_at(each.path().string());
    for (const auto& other : std::filesystem::directory_iterator(chat_templates)) {
      const ChatTemplate chats(read_text(other.path().string()));
      for (const std::string jinja : json.at("published"))
        CHECK(chats.is_published_as("\n" + jinja + "\n") == (each.path() == other.path()));
    }
  }
  const ChatTemplate chatml = template_named("chatml");
  CHECK(!chatml.is_published_as(""));
  // Qwen's, which writes a system message of its own
  CHECK(
      !chatml.is_published_as("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}…"));
}

TEST_CASE("files of templates are checked") {
  const auto refuses = [](const std::string& json, const std::string& words) {
    CHECK_THROWS_WITH_AS(ChatTemplate(json, "mine.json"), doctest::Contains(words.c_str()), FileError);
  };
  refuses("{\"name\": \"x\"}", "user");
  refuses(R"({"name": "x", "user": "no place", "assistant": {"answer": "{content}"}})", "{content}");
  refuses(R"({"name": "x", "usr": "{content}"})", "did you mean 'user'");
  refuses(R"({"name": "x", "tokens": [""], "user": "{content}", "assistant": {"answer": "{content}"}})",
          "not be empty");
}
