/// Tokenizers: between text and tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace xtape {

using Tokens = std::vector<std::int32_t>;  ///< Numbers of tokens, as tokenizers give them.

/// The largest vocabulary that options may ask for.
inline constexpr std::int64_t most_pieces = std::int64_t{1} << 20;

/// A file of a tokenizer in addition to its JSON.
struct TokenizerFile {
  std::string name;
  std::string bytes;
};

/// Converts text (UTF-8) to tokens, numbers in [0, size()), and back. Const functions are safe in several threads at
/// once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::int64_t size() const = 0;  ///< The vocabulary size.
  /// The tokens of `text`, without start and end. Unless the class says otherwise, throws Error if `text` is not UTF-8,
  /// or not in the vocabulary and there is no unknown token.
  virtual Tokens encode(const std::string& text) const = 0;
  /// The text of `tokens`, without pad, start and end. Throws Error if a token is outside the vocabulary.
  virtual std::string decode(const Tokens& tokens) const = 0;
  /// Each token as text, for display; special tokens by name. Throws as decode.
  virtual std::vector<std::string> pieces(const Tokens& tokens) const;

  // The special tokens; -1: none.
  virtual std::int32_t pad() const { return -1; }      ///< Pads the rows of a batch.
  virtual std::int32_t unknown() const { return -1; }  ///< Replaces text that is not in the vocabulary.
  virtual std::int32_t start() const { return -1; }    ///< Precedes a text.
  virtual std::int32_t end() const { return -1; }      ///< Follows a text.
  /// Whether prompts begin with `start`.
  virtual bool begins() const { return false; }

  virtual std::string to_json() const = 0;  ///< As load_tokenizer reads it.
  /// The files that its JSON refers to; `stem` is the name of the JSON file without ".json".
  virtual std::vector<TokenizerFile> files(const std::string& stem) const;

 protected:
  void check_token(std::int32_t token) const;  ///< Throws Error if it is outside the vocabulary.
};

/// Writes the tokenizer's JSON to `path`, and its files() to the same folder. Throws FileError, also if the folder has
/// different files of these names and no file `path`.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& path);

/// Loads a tokenizer of any kind: from the JSON file `path`, or from a folder of the Hugging Face Hub. In a folder,
/// tokenizer.model or spiece.model gives a SentencePieceTokenizer, else tokenizer.json a PublishedTokenizer, with the
/// special tokens of tokenizer_config.json, special_tokens_map.json and config.json; vocab.json and merges.txt, unless
/// there is a published tokenizer.json, give a Gpt2Tokenizer; vocab.txt alone gives BERT's PublishedTokenizer. Throws
/// FileError if a file is missing, damaged or not of a tokenizer.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);
/// The tokenizer of such a folder for the texts of its decoder, which start with config.json's decoder_start_token_id.
std::unique_ptr<Tokenizer> load_target_tokenizer(const std::string& folder);

/// The special tokens of a Hugging Face folder.
struct PublishedTokens {
  std::int32_t pad = -1, start = -1, end = -1;  ///< As Tokenizer's.
  bool begins = false;                          ///< As Tokenizer's.
  std::int64_t size = 0;  ///< The model's vocabulary size; tokens without a piece have no text.
};

/// One token per character (Unicode code point).
class CharacterTokenizer : public Tokenizer {
 public:
  /// How characters that are not in the vocabulary are encoded.
  enum class Unknown : std::uint8_t {
    error,  ///< encode throws Error, which names the character and its byte offset.
    token   ///< As an additional last token, which decodes to U+FFFD.
  };
  /// The vocabulary is the characters of `text`, ordered by code point. With `special_tokens`, pad 0, unknown 1, start
  /// 2 and end 3 precede them, and Unknown::token encodes as 1. Throws Error if `text` is not UTF-8.
  explicit CharacterTokenizer(const std::string& text, Unknown unknown = Unknown::error, bool special_tokens = false);
  /// The same for the characters of `lines`.
  explicit CharacterTokenizer(const std::vector<std::string>& lines, Unknown unknown = Unknown::error,
                              bool special_tokens = false);

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;
  std::string decode(const Tokens& tokens) const override;
  std::int32_t pad() const override;
  std::int32_t unknown() const override;
  std::int32_t start() const override;
  std::int32_t end() const override;
  std::string to_json() const override;

 private:
  std::int32_t first() const;  // the token of the first character

  std::vector<char32_t> characters_;  // sorted; a character's token is first() + its index
  Unknown unknown_;
  bool special_tokens_;
};

struct WordOptions {
  std::int64_t minimum_count = 1;  ///< Words that occur less often are unknown.
  bool lower_case = false;         ///< Whether text is lower-cased first.
  /// The vocabulary is extended with `<fill0>`, `<fill1>` … to a multiple of this, which is at most most_pieces.
  std::int64_t multiple = 1;
};

/// One token per word of text that is already cut into words by white space. Pad is 0, unknown 1, start 2, end 3; the
/// words follow. Decoding joins words with single spaces and writes `<unk>` for unknown ones.
class WordTokenizer : public Tokenizer {
 public:
  /// The vocabulary is the words of `lines` by descending frequency, equally frequent ones ordered by their bytes.
  /// Throws Error if a line is not UTF-8 or an option is out of range.
  explicit WordTokenizer(const std::vector<std::string>& lines, const WordOptions& options = {});
  /// The vocabulary is the first word of each line, unchanged; the rest of the line (a count) and options.minimum_count
  /// are ignored. Throws Error, with the line, if it is empty or repeats a word.
  static WordTokenizer with_vocabulary(const std::vector<std::string>& lines, const WordOptions& options = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(words_.size()); }
  Tokens encode(const std::string& text) const override;
  std::string decode(const Tokens& tokens) const override;
  std::int32_t pad() const override { return 0; }
  std::int32_t unknown() const override { return 1; }
  std::int32_t start() const override { return 2; }
  std::int32_t end() const override { return 3; }
  std::string to_json() const override;

 private:
  WordTokenizer();
  bool add(const std::string& word);  // false if it is in the vocabulary already
  void fill_up(std::int64_t multiple);

  bool lower_case_ = false;
  std::vector<std::string> words_;  // by token
  std::unordered_map<std::string, std::int32_t> tokens_;
};

struct SentencePieceOptions {
  std::string model = "unigram";        ///< "unigram" (Kudo, 2018) or "bpe" (Sennrich, Haddow, Birch, 2016).
  std::int64_t vocabulary_size = 8000;  ///< Special tokens included.
  bool lower_case = false;              ///< Normalise with case folding (nmt_nfkc_cf), not by nmt_nfkc.
};

/// Pieces of words by the sentencepiece library (Kudo, Richardson, 2018). Decoding gives the normalised text. In models
/// trained here, pad is 0, unknown 1, start 2, end 3.
class SentencePieceTokenizer : public Tokenizer {
 public:
  /// Trains on `lines`; the same lines and options give the same model, byte for byte. Words of more than 256
  /// characters count as several words, and NUL characters are ignored. A unigram model may have fewer pieces than
  /// asked for. Throws Error if an option is out of range, a line is not UTF-8, the lines have only white space and
  /// control characters, or, with the limit, the vocabulary is too small for the characters or (bpe) too large for the
  /// words.
  SentencePieceTokenizer(const std::vector<std::string>& lines, const SentencePieceOptions& options);
  /// From the bytes of a model, as model() returns them. Throws Error if they are not a model.
  explicit SentencePieceTokenizer(const std::string& model);
  /// The same model with the special tokens of a folder.
  SentencePieceTokenizer with_tokens(const PublishedTokens& published) const;

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;
  std::string decode(const Tokens& tokens) const override;
  std::vector<std::string> pieces(const Tokens& tokens) const override;
  std::int32_t pad() const override;
  std::int32_t unknown() const override;
  std::int32_t start() const override;
  std::int32_t end() const override;
  bool begins() const override;
  std::int32_t token_of(const std::string& piece) const;  ///< -1 if it is not a piece.
  std::string to_json() const override;
  /// The model, as stem.model.
  std::vector<TokenizerFile> files(const std::string& stem) const override;
  std::string model() const { return model_; }  ///< The bytes of the model.

 private:
  std::string model_;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
  PublishedTokens published_;
  bool is_published_ = false;
};

/// Tokens, and the type of each: 0 and 1 for the two texts of a pair, as BERT distinguishes them.
struct TypedTokens {
  Tokens tokens, types;
};

/// A tokenizer.json in the format of Hugging Face's tokenizers: BPE of bytes (Llama 3, GPT-2) or of characters (Llama 2,
/// Gemma), Unigram (T5) or WordPiece (BERT), with normalizers, pre-tokenizers, decoders and templates. Tokens that the
/// file adds to the vocabulary are found in texts; special tokens are not. BPE of bytes without a normalizer encodes any
/// bytes.
class PublishedTokenizer : public Tokenizer {
 public:
  /// From the text of such a file, which errors call `name`. Throws FileError, with the line, if it is damaged or uses
  /// features that are not supported.
  explicit PublishedTokenizer(const std::string& json, const std::string& name = "tokenizer.json");
  /// The same with the special tokens of a folder.
  PublishedTokenizer with_tokens(const PublishedTokens& published) const;

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;
  std::string decode(const Tokens& tokens) const override;               ///< Without all special tokens.
  std::vector<std::string> pieces(const Tokens& tokens) const override;  ///< As the vocabulary writes them: "Ġthe".
  /// One text or a pair of texts with the special tokens of the file's template: [CLS] a [SEP] b [SEP].
  TypedTokens in_template(const std::vector<std::string>& texts) const;
  std::int32_t pad() const override { return published_.pad; }
  std::int32_t unknown() const override;
  std::int32_t start() const override { return published_.start; }
  std::int32_t end() const override { return published_.end; }
  bool begins() const override { return published_.begins; }
  std::int32_t token_of(const std::string& piece) const;  ///< The token of a piece or special token; -1 for others.
  std::int32_t template_start() const;  ///< The special token that the template puts before a text; -1: none.
  std::int32_t template_end() const;    ///< The same after a text.
  std::string to_json() const override;
  /// The file, as stem.published.json; of Gpt2Tokenizer, vocab.json and merges.txt for any stem.
  std::vector<TokenizerFile> files(const std::string& stem) const override;

 protected:
  struct Data;
  explicit PublishedTokenizer(std::shared_ptr<const Data> data);

 private:
  std::shared_ptr<const Data> data_;
  PublishedTokens published_;
};

struct Gpt2Options {
  bool end_in_text = false;  ///< Whether `<|endoftext|>` in a text is the end token, not plain text.
};

/// GPT-2's tokenizer (Radford et al., 2019): pieces of words, merged from bytes. Encodes any bytes, UTF-8 or not, and
/// decodes to the same bytes, except for end tokens. The tokens equal those of Hugging Face's tokenizers and of
/// tiktoken. PCRE2's version of Unicode decides what letters and numbers are. Its end is `<|endoftext|>`, if the
/// vocabulary has it.
class Gpt2Tokenizer : public PublishedTokenizer {
 public:
  /// From the two files published with GPT-2: `vocabulary` (vocab.json), a JSON object from pieces to tokens, with
  /// bytes written as printable characters, and `merges` (merges.txt), a pair of pieces per line, the earliest merge
  /// first. Throws FileError, with the line if possible, if a file cannot be read, the tokens are not 0, 1, 2 …, the
  /// piece of a byte is missing, or a merge names an unknown piece.
  Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options = {});
};

}  // namespace xtape
