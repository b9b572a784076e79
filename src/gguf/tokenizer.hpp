/// Tokenizers in the metadata of GGUF files, as the files of a folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gguf/file.hpp"

namespace xtape::gguf {

inline const std::string tokenizer_prefix = "tokenizer.ggml.";  ///< The beginning of keys.

/// The types of tokens, by their numbers in files, which are those of sentencepiece.
enum class TokenType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

/// Returns the files of the tokenizer: tokenizer.json, tokenizer.model or vocab.txt, with tokenizer_config.json and
/// generation_config.json. Adds the special tokens to the config. Returns no files if the metadata have no tokenizer.
/// Throws FileError if the tokenizer is damaged or of an unknown kind.
std::map<std::string, std::string> tokenizer_files(const FileData& file, Json& config);

/// How a byte-level tokenizer splits texts into words, from models/gguf/pre_tokenizers.json.
struct PreTokenizer {
  std::string name;                  ///< The first of its names.
  std::vector<std::string> regexes;  ///< Each splits what the ones before leave. Empty: that of GPT-2.
  bool whole_words = false;          ///< Whether a word that is a token is not merged from pieces.
  bool begins = false;               ///< Whether texts begin with the start token if the file does not say it.
  std::string normalizer;            ///< "NFC" or "".
};
/// Returns the pre-tokenizer of this name. Throws FileError, naming `where`, if there is none.
PreTokenizer find_pre_tokenizer(const std::string& name, const std::string& where);
std::vector<PreTokenizer> pre_tokenizers();

/// The pieces of a sentencepiece model.
struct Pieces {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<TokenType> types;
  bool unigram = false;       ///< Whether the most probable pieces count, instead of merges by scores.
  bool space_first = true;    ///< Whether a text gets a space before it.
  bool fewer_spaces = false;  ///< Whether several spaces become one.
};
/// Writes and reads the message of a sentencepiece model. `read_pieces_of` throws FileError naming `where`.
std::string sentencepiece_model(const Pieces& pieces);
Pieces read_pieces_of(const std::string& model, const std::string& where);

}  // namespace xtape::gguf
