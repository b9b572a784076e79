/// What kinds of data with chats have in common: chats in files, their roles and their template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

/// Reads a list of messages. Its errors have the place in the file.
Chat read_chat(const Recipe::Data& data, const JsonNode& messages);
/// A chat as a text of a split, and back.
std::string text_of_chat(const Chat& chat);
Chat chat_of_text(const std::string& text);
/// Returns the messages of texts of chats.
std::vector<std::string> contents_of(const TableTexts& columns);

/// The keys `template` and `roles`.
Key<Recipe::Data> template_key();
Key<Recipe::Data> roles_key();

/// Returns the template that the recipe names, or that the folder of the tokenizer has. Null if there is neither.
/// Throws Error with the text of the folder's template if no installed template is equal to it.
std::shared_ptr<const ChatTemplate> chat_template_of(const Recipe& recipe);
/// Returns the tokenizers with a template. A tokenizer that the run has made gets the template's special tokens.
Tokenizers with_chats(Tokenizers made, const std::shared_ptr<const ChatTemplate>& chats, const Recipe& recipe);

/// Makes the rows of a split. `cells` makes those of one row of texts; a row without targets, or with more than
/// max_length tokens in a column, is left out. Errors get the place of the row.
DataRows rows_of_chats(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers,
                       std::int64_t max_length,
                       const std::function<std::vector<DataRows::Cell>(std::size_t row)>& cells);
/// Returns a cell whose targets are the answers of a chat, after the first `given_answers`.
DataRows::Cell cell_of(const ChatTokens& chat, std::size_t given_answers = 0);

}  // namespace xtape::train
