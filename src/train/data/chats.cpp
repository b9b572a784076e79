// Data of kind "chats": a row is a conversation, of which the answers are learned.
#include "train/data/chats.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/folder_file.hpp"
#include "data/tables/json_lines.hpp"
#include "xtape/model.hpp"

namespace xtape::train {

Chat read_chat(const Recipe::Data& data, const JsonNode& messages) {
  Chat chat;
  for (const JsonNode& each : messages.elements()) {
    const JsonNode node = at_path(each, field_of(data, "role"));
    std::string role = node.text();
    for (const auto& [in_file, name] : data.roles)
      if (role == in_file) role = name;
    if (role != "system" && role != "user" && role != "assistant")
      node.fail("the role must be \"system\", \"user\" or \"assistant\"; other names of them belong into data.roles");
    chat.push_back({role, at_path(each, field_of(data, "content")).text()});
  }
  if (chat.empty()) messages.fail("the chat has no messages");
  return chat;
}

std::string text_of_chat(const Chat& chat) {
  Json list = Json::array();
  for (const auto& [role, content] : chat) list.push_back({role, content});
  return list.dump();
}

Chat chat_of_text(const std::string& text) {
  Chat chat;
  const Json list = Json::parse(text);
  for (const Json& each : list) chat.push_back({each[0], each[1]});
  return chat;
}

std::vector<std::string> contents_of(const TableTexts& columns) {
  std::vector<std::string> contents;
  for (const std::vector<std::string>& column : columns)
    for (const std::string& text : column)
      for (ChatMessage& message : chat_of_text(text)) contents.push_back(std::move(message.content));
  return contents;
}

namespace {
std::string templates_directory() {
  return path_in(models_directory(), "chat_templates");
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  if (path_exists(templates_directory())) names = names_in(templates_directory());
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".json"); });
  for (std::string& name : names) name.resize(name.size() - std::string(".json").size());
  std::ranges::sort(names);
  return names;
}

std::shared_ptr<const ChatTemplate> load(const std::string& file) {
  return std::make_shared<ChatTemplate>(read_file(file), file);
}

std::shared_ptr<const ChatTemplate> installed(const std::string& name) {
  return load(path_in(templates_directory(), name + ".json"));
}

/// Returns the template of a folder of the Hugging Face Hub in Jinja, or "" if it has none.
std::string jinja_of(const std::string& folder) {
  if (const std::string file = path_in(folder, "chat_template.jinja"); path_exists(file)) return read_file(file);
  const std::string file = path_in(folder, "tokenizer_config.json");
  if (!path_exists(file)) return "";
  const JsonNode config(read_file(file), file, JsonErrors::file, JsonNumbers::any);
  if (!config.is_object() || !config.has("chat_template")) return "";
  const JsonNode text = config.at("chat_template");
  if (!text.is_array()) return text.is_string() ? text.text() : "";
  for (const JsonNode& each : text.elements())  // several, by name
    if (each.at("name").text() == "default") return each.at("template").text();
  return "";
}
}  // namespace

std::shared_ptr<const ChatTemplate> chat_template_of(const Recipe& recipe) {
  const std::string& named = recipe.data.chat_template;
  const std::vector<std::string> names = template_names();
  if (is_plain_file(named)) return load(named);
  if (contains(names, named)) return installed(named);
  if (!named.empty())
    throw FileError("there is no chat template '" + named + "', as a file or among those of " + templates_directory() +
                    did_you_mean(named, names) + " (templates: " + joined(names) + ")");
  const std::string& folder = recipe.tokenizer.kind == "saved" ? recipe.tokenizer.path : recipe.from;
  const std::string jinja = opens_as_folder(folder) ? jinja_of(folder) : "";
  if (jinja.empty()) return nullptr;
  for (const std::string& name : names)
    if (auto chats = installed(name); chats->is_published_as(jinja)) return chats;
  throw Error(
      folder + " has a chat template that is none of the known ones (" + joined(names) +
      "). Name the one to use with --set data.template=NAME, or write one in a file, of which NAME is the path. "
      "This is the text of the folder's template:\n" +
      printable(jinja));
}

Tokenizers with_chats(Tokenizers made, const std::shared_ptr<const ChatTemplate>& chats, const Recipe& recipe) {
  made.chats = chats;
  if (chats) made.source = made.target = with_special_tokens(made.target, chats->special_tokens(), recipe);
  return made;
}

Key<Recipe::Data> template_key() {
  return {"template", &Recipe::Data::chat_template,
          "how chats become tokens: a file, or the name of an installed template; by default the one that the "
          "tokenizer's folder has",
          a_path};
}

Key<Recipe::Data> roles_key() {
  const auto read = [](Section& section, const std::string& name, Recipe::Data& data) {
    const Section roles = section.section(name);
    for (const auto& [role, value] : roles.json().items()) {
      if (value != "system" && value != "user" && value != "assistant")
        roles.fail(role, R"(must be "system", "user" or "assistant", not )" + value.dump());
      data.roles.emplace_back(role, value.get<std::string>());
    }
  };
  return {"roles", "section", "", "what the file calls roles: `{\"human\": \"user\", \"gpt\": \"assistant\"}`", read};
}

DataRows rows_of_chats(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers,
                       std::int64_t max_length, const std::function<std::vector<DataRows::Cell>(std::size_t)>& cells) {
  DataRows made{recipe.data.columns, {}, places(recipe.data, split), {}};
  for (Column& column : made.columns) column.pad = std::max(0, tokenizers.target->pad());
  for (std::size_t row = 0; row < split.size(); ++row) {
    try {
      std::vector<DataRows::Cell> row_cells = cells(row);
      const auto fits = [&](const DataRows::Cell& cell) {
        return cell.tokens.size() >= 2 && std::ranges::count(cell.given, false) > 0 &&
               (max_length == 0 || std::ssize(cell.tokens) <= max_length);
      };
      if (!std::ranges::all_of(row_cells, fits)) continue;
      made.rows.push_back(std::move(row_cells));
      made.texts.push_back(static_cast<std::uint32_t>(row));
    } catch (const Error& error) {
      throw Error(made.place(row, 0) + ": " + error.what());
    }
  }
  return made;
}

DataRows::Cell cell_of(const ChatTokens& chat, std::size_t given_answers) {
  DataRows::Cell cell{chat.tokens, {}};
  std::size_t answers = 0;  // so far
  for (std::size_t i = 0; i < chat.answers.size(); ++i) {
    if (chat.answers[i] && (i == 0 || !chat.answers[i - 1])) ++answers;
    cell.given.push_back(!chat.answers[i] || answers <= given_answers);
  }
  return cell;
}

namespace {
struct ChatData final : DataKind {
  ChatData() : DataKind({.name = "chats", .task = Task::texts, .columns = {{"messages", Column::Kind::target}}}) {
    keys = {{{file_key("chats", "a file of JSON Lines or several, with a chat in each line"),
              fields_key({"messages", "role", "content"}), template_key(), roles_key(), pack_key()}}};
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    split.columns.resize(1);
    for_each_object(part.files[0], data.reading, [&](const JsonNode& row, std::size_t line) {
      const JsonNode messages = at_path(row, field_of(data, "messages"));
      const Chat chat = read_chat(data, messages);
      if (std::ranges::none_of(chat, [](const ChatMessage& each) { return each.role == "assistant"; }))
        messages.fail("the chat has no message of \"assistant\": there is nothing to learn");
      split.columns[0].push_back(text_of_chat(chat));
      part.lines.push_back(line);
    });
  }

  std::vector<std::string> texts(const Recipe::Data&, const DataSplit& split,
                                 const std::vector<Column::Kind>&) const override {
    return contents_of(split.columns);
  }

  Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const override {
    const auto chats = chat_template_of(recipe);
    if (!chats)
      throw Error("chats need a template: give one with --set data.template=NAME (" + joined(template_names()) +
                  ", or a file)");
    return with_chats(DataKind::tokenizers(recipe, training), chats, recipe);
  }

  DataRows rows(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers,
                std::int64_t max_length) const override {
    return rows_of_chats(recipe, split, tokenizers, max_length, [&](std::size_t row) {
      return std::vector{cell_of(tokenizers.chats->encode(*tokenizers.target, chat_of_text(split.columns[0][row])))};
    });
  }
};
}  // namespace

const DataKind& chat_data() {
  static const ChatData kind;
  return kind;
}

}  // namespace xtape::train
