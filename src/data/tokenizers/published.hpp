/// Tokenizers of model folders in the format of the Hugging Face Hub.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tokenizers/word_pattern.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

// Reads the entries of a tokenizer.json.

/// Returns whether an entry is missing, null, false or "".
bool is_unset(const JsonNode& object, const char* key);
/// Returns the flag at a key, or `missing` if the entry is missing or null.
bool flag_of(const JsonNode& object, const char* key, bool missing);
/// Returns the text at a key, or `missing` if the entry is missing or null.
std::string text_of(const JsonNode& object, const char* key, const std::string& missing);
/// Returns the elements of a "Sequence", including those of nested Sequences, or the node itself if it is not a
/// Sequence.
std::vector<JsonNode> parts_of(const JsonNode& node, const char* list);
/// Returns the result of `make`. Errors of `make` get the location of the node.
template <class Make>
auto at_node(const JsonNode& node, const Make& make) {
  try {
    return make();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    node.fail(error.what());
  }
}
/// Returns the text that replaces a space in "Metaspace".
std::string space_of(const JsonNode& node);
/// Returns where "Metaspace" adds a space: "always", "first" or "never".
std::string prepend_scheme(const JsonNode& node);
/// Returns the token at a node.
std::int32_t read_token(const JsonNode& node);
/// Returns the pattern {"Regex": …} or {"String": …}.
WordPattern read_pattern(const JsonNode& node);
/// Throws a FileError that the "type" of the node is not supported.
[[noreturn]] void refuse_type(const JsonNode& node, const std::string& what, const std::string& supported);

// Reads BERT's tokenizer from vocab.txt.

/// Returns a tokenizer.json for BERT's tokenizer. `lines` are the lines of vocab.txt, one piece per line. `config` is
/// the content of tokenizer_config.json, or an empty node. Throws FileError if the vocabulary lacks a special token.
std::string bert_json(const std::vector<std::string>& lines, const JsonNode& config);

// The post-processors of a tokenizer.json. They specify the special tokens around a text and around a pair of texts.

/// A part of a template: special tokens, or a text.
struct TemplatePart {
  Tokens tokens;      ///< Empty if the part is a text.
  bool second;        ///< For a text, whether it is the second text of the pair.
  std::int32_t type;  ///< The type of the tokens of this part.
};

struct Templates {
  std::vector<TemplatePart> single = {{{}, false, 0}};
  std::vector<TemplatePart> pair = {{{}, false, 0}, {{}, true, 1}};

  /// The special tokens that begin and end a single text, or -1 if there is none.
  std::int32_t first() const { return single.front().tokens.empty() ? -1 : single.front().tokens.front(); }
  std::int32_t last() const { return single.back().tokens.empty() ? -1 : single.back().tokens.back(); }
};

/// Reads the entry "post_processor". `token_of` returns the token of a text, or -1. Throws FileError at an unsupported
/// entry.
Templates read_templates(const JsonNode& node, const std::function<std::int32_t(const std::string&)>& token_of);

/// Returns the result of `read`. Its errors begin with the path of the file.
template <class Read>
auto of_file(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(path + ": " + error.what());
  }
}

Json json_of(const PublishedTokens& published);
PublishedTokens read_published(const JsonNode& node);

/// Returns the text to show for a token without a piece.
std::string unnamed_piece(std::int32_t token);

/// Reads the tokenizer of a folder: see load_tokenizer. If `target` is true, the tokenizer is for the text that a
/// decoder produces. Such a text starts with the decoder's start token.
std::unique_ptr<Tokenizer> published_tokenizer(const std::string& folder, bool target);

/// The folders of the two tokenizers of a translating model, inside that of the model, if they differ.
inline constexpr const char* source_tokenizer_folder = "source_tokenizer";
inline constexpr const char* target_tokenizer_folder = "target_tokenizer";

/// Writes the files of a tokenizer to a folder, from which load_tokenizer and transformers read the same tokens, apart
/// from those of special tokens in a text: tokenizer.json, tokenizer.model, or vocab.json and merges.txt, and
/// tokenizer_config.json. With `begins`, prompts begin with the start token. Throws FileError.
void save_published(const Tokenizer& tokenizer, const std::string& folder, bool begins);

}  // namespace xtape
