// Data of kind "preferences": a row is a prompt with two answers, a chosen and a rejected one.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/tables/json_lines.hpp"
#include "train/data/chats.hpp"

namespace xtape::train {

namespace {
using Cell = DataRows::Cell;

/// Returns messages, or those of a text, which is a message of `role`.
Chat read_side(const Recipe::Data& data, const JsonNode& node, const char* role) {
  if (node.is_string()) return {{role, node.text()}};
  if (!node.is_array()) node.fail("a text or a list of messages belongs here");
  return read_chat(data, node);
}

/// Moves the messages with which both chats begin to the prompt.
void split_prompt(Chat& prompt, Chat& chosen, Chat& rejected) {
  std::size_t same = 0;
  const auto equal = [](const ChatMessage& a, const ChatMessage& b) {
    return a.role == b.role && a.content == b.content;
  };
  while (same + 1 < std::min(chosen.size(), rejected.size()) && equal(chosen[same], rejected[same])) ++same;
  const auto end = static_cast<std::ptrdiff_t>(same);
  prompt.assign(chosen.begin(), chosen.begin() + end);
  for (Chat* each : {&chosen, &rejected}) each->erase(each->begin(), each->begin() + end);
}

/// Returns the tokens of a prompt and its answer without a template.
Cell plain_cell(const Tokenizer& tokenizer, const std::string& prompt, const std::string& answer) {
  Tokens tokens = framed(tokenizer, prompt);
  tokens.pop_back();
  Cell cell{tokens, {}, std::vector<bool>(tokens.size(), true)};
  const Tokens more = framed(tokenizer, answer);
  cell.tokens.insert(cell.tokens.end(), more.begin() + 1, more.end());
  cell.given.resize(cell.tokens.size());
  return cell;
}

struct PreferenceData final : DataKind {
  PreferenceData()
      : DataKind({.name = "preferences",
                  .task = Task::texts,
                  .title = "preferences",
                  .columns = {{.name = "chosen", .kind = Column::Kind::target, .prefix = "chosen_"},
                              {.name = "rejected", .kind = Column::Kind::target, .prefix = "rejected_"}}}) {
    keys = {{{file_key("preferences", "a file of JSON Lines or several, with a prompt and two answers in each line"),
              fields_key({"prompt", "chosen", "rejected", "role", "content"}), template_key(), roles_key()}}};
  }

  /// The columns of a split: prompt, chosen and rejected, each the text of a chat.
  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    split.columns.resize(3);
    for_each_object(part.files[0], data.reading, [&](const JsonNode& row, std::size_t line) {
      const JsonNode first = at_path(row, field_of(data, "chosen"));
      Chat prompt, chosen = read_side(data, first, "assistant"),
                   rejected = read_side(data, at_path(row, field_of(data, "rejected")), "assistant");
      if (row.has(field_of(data, "prompt")) || first.is_string())
        prompt = read_side(data, at_path(row, field_of(data, "prompt")), "user");
      else
        split_prompt(prompt, chosen, rejected);
      for (const Chat* answer : {&chosen, &rejected})
        if (answer->size() != 1 || answer->front().role != "assistant")
          row.fail("'chosen' and 'rejected' must have one message of \"assistant\" after the prompt");
      split.columns[0].push_back(text_of_chat(prompt));
      split.columns[1].push_back(text_of_chat(chosen));
      split.columns[2].push_back(text_of_chat(rejected));
      part.lines.push_back(line);
    });
  }

  std::vector<std::string> texts(const Recipe::Data&, const DataSplit& split,
                                 const std::vector<Column::Kind>&) const override {
    return contents_of(split.columns);
  }

  Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const override {
    return with_chats(DataKind::tokenizers(recipe, training), chat_template_of(recipe), recipe);
  }

  DataRows rows(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers,
                std::int64_t max_length) const override {
    return rows_of_chats(recipe, split, tokenizers, max_length, [&](std::size_t row) {
      const Chat prompt = chat_of_text(split.columns[0][row]);
      std::vector<Cell> cells;
      for (const std::size_t side : {1, 2})
        cells.push_back(cell(tokenizers, prompt, chat_of_text(split.columns[side][row])));
      return cells;
    });
  }

  static Cell cell(const Tokenizers& tokenizers, const Chat& prompt, const Chat& answer) {
    if (!tokenizers.chats) {
      if (prompt.size() != 1 || prompt[0].role != "user")
        throw Error("messages need a chat template: give one with --set data.template=NAME");
      return plain_cell(*tokenizers.target, prompt[0].content, answer[0].content);
    }
    Chat whole = prompt;
    whole.insert(whole.end(), answer.begin(), answer.end());
    const auto given = std::ranges::count_if(prompt, [](const ChatMessage& each) { return each.role == "assistant"; });
    return cell_of(tokenizers.chats->encode(*tokenizers.target, whole), static_cast<std::size_t>(given));
  }
};
}  // namespace

const DataKind& preference_data() {
  static const PreferenceData kind;
  return kind;
}

}  // namespace xtape::train
