/// Tokenizers convert between text and tokens.
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

using Tokens = std::vector<std::int32_t>;  ///< Token indices, as returned by tokenizers.

/// The largest vocabulary size that options can request.
inline constexpr std::int64_t most_pieces = std::int64_t{1} << 20;

/// A file of a tokenizer in addition to its JSON.
struct TokenizerFile {
  std::string name;
  std::string bytes;
};

/// Converts text (UTF-8) to tokens and back. Tokens are integers in [0, size()). Const functions are safe in several
/// threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::int64_t size() const = 0;  ///< The vocabulary size.
  /// Returns the tokens of `text`, without start and end. Unless the class says otherwise, throws Error if `text` is
  /// not UTF-8, or if there is no unknown token for text outside the vocabulary.
  virtual Tokens encode(const std::string& text) const = 0;
  /// The text of `tokens`, without pad, start and end. Throws Error if a token is outside the vocabulary.
  virtual std::string decode(const Tokens& tokens) const = 0;
  /// Returns each token as text, for display. Special tokens are shown by name. Errors are those of `decode`.
  virtual std::vector<std::string> pieces(const Tokens& tokens) const;

  // The special tokens. -1 means that there is none.
  virtual std::int32_t pad() const { return -1; }      ///< Pads the rows of a batch.
  virtual std::int32_t unknown() const { return -1; }  ///< Replaces text that is not in the vocabulary.
  virtual std::int32_t start() const { return -1; }    ///< Precedes a text.
  virtual std::int32_t end() const { return -1; }      ///< Follows a text.
  /// The tokens at which generation of a text ends. The tokenizer of a folder returns the tokens of
  /// generation_config.json or config.json if one of them has any. Otherwise this is `end`, if there is one.
  virtual Tokens ends() const { return end() < 0 ? Tokens() : Tokens{end()}; }
  /// Whether prompts begin with `start`.
  virtual bool begins() const { return false; }
  /// The token of a piece, an added token or a special token. -1 if there is none, or if the tokenizer has no pieces.
  virtual std::int32_t token_of(const std::string& /*piece*/) const { return -1; }

  virtual std::string to_json() const = 0;  ///< The JSON that load_tokenizer reads.
  /// Returns the files that the tokenizer's JSON refers to. `stem` is the name of the JSON file without ".json".
  virtual std::vector<TokenizerFile> files(const std::string& stem) const;

 protected:
  void check_token(std::int32_t token) const;  ///< Throws Error if the token is outside the vocabulary.
};

/// Writes the tokenizer's JSON to `path`, and its files() to the same folder. Throws FileError if a file cannot be
/// written. Throws FileError if `path` does not exist, but the folder has files of the same names with other contents.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& path);

/// Loads a tokenizer of any kind from the JSON file `path` or from a folder of the Hugging Face Hub. The first of these
/// files that a folder has determines the class: a published tokenizer.json gives a PublishedTokenizer; tokenizer.model
/// or spiece.model gives a SentencePieceTokenizer; vocab.json with merges.txt gives GPT-2's PublishedTokenizer;
/// vocab.txt gives BERT's PublishedTokenizer. tokenizer_config.json, added_tokens.json, special_tokens_map.json,
/// config.json and generation_config.json add tokens and give the special tokens (docs/reference/definitions.md).
/// Throws FileError if a file is missing, damaged or not part of a tokenizer, or if an added token contradicts the
/// vocabulary.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);
/// Loads the tokenizer of a folder for the texts of its decoder, which start with config.json's decoder_start_token_id.
std::unique_ptr<Tokenizer> load_target_tokenizer(const std::string& folder);

/// A token that a folder adds to the vocabulary of its tokenizer.
struct AddedToken {
  std::string content;
  std::int32_t token = -1;
  bool special = false;      ///< Whether decoding leaves the token out.
  bool found = true;         ///< Whether the token is found in texts. If not, its text is ordinary text.
  bool normalized = false;   ///< Whether it is found in texts after the normalizers have changed them, not before.
  bool single_word = false;  ///< Whether it is found only where no letter or digit is next to it.
  bool left = false;         ///< Whether a match includes the white space before it.
  bool right = false;        ///< Whether a match includes the white space after it.
};

/// The special tokens and the added tokens of a Hugging Face folder.
struct PublishedTokens {
  std::int32_t pad = -1, start = -1, end = -1;  ///< See Tokenizer.
  bool begins = false;                          ///< See Tokenizer.
  std::int64_t size = 0;                        ///< The model's vocabulary size. Tokens without a piece have no text.
  Tokens ends = {};                             ///< See Tokenizer. Empty: `end` alone.
  std::vector<AddedToken> added = {};           ///< Later ones replace earlier ones with the same content.
  /// For sentencepiece: whether a text after an added token is encoded as at the beginning of a text, with a space.
  bool spaced = false;
};

/// One token per character (Unicode code point).
class CharacterTokenizer : public Tokenizer {
 public:
  /// The encoding of characters outside the vocabulary.
  enum class Unknown : std::uint8_t {
    error,  ///< encode throws Error with the character and its byte offset.
    token   ///< Such a character becomes an additional last token, which decodes to U+FFFD.
  };
  /// Makes a vocabulary of the characters of `text`, ordered by code point. With `special_tokens`, pad 0, unknown 1,
  /// start 2 and end 3 come first. Characters outside the vocabulary then become token 1 instead of an additional last
  /// token (with Unknown::token). Throws Error if `text` is not UTF-8.
  explicit CharacterTokenizer(const std::string& text, Unknown unknown = Unknown::error, bool special_tokens = false);
  /// Makes a vocabulary of the characters of `lines`.
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
  std::int64_t minimum_count = 1;  ///< Less frequent words are unknown.
  bool lower_case = false;         ///< Whether text is converted to lower case first.
  /// Tokens `<fill0>`, `<fill1>` … extend the vocabulary to a multiple of this number, 1 to most_pieces.
  std::int64_t multiple = 1;
};

/// One token per word. White space separates the words of the text. Pad is 0, unknown 1, start 2, end 3. The words
/// follow. Decoding joins words with single spaces and writes `<unk>` for unknown words.
class WordTokenizer : public Tokenizer {
 public:
  /// Makes a vocabulary of the words of `lines` by descending frequency. Words of equal frequency are ordered by their
  /// bytes. Throws Error if a line is not UTF-8 or an option is out of range.
  explicit WordTokenizer(const std::vector<std::string>& lines, const WordOptions& options = {});
  /// Makes a vocabulary of the first word of each line, unchanged. Ignores the rest of the line (a count) and
  /// options.minimum_count. Throws Error with the line if a line is empty or repeats a word.
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
  std::int64_t vocabulary_size = 8000;  ///< Includes the special tokens.
  bool lower_case = false;              ///< Whether to normalise with case folding (nmt_nfkc_cf) instead of nmt_nfkc.
};

/// Subword pieces from the sentencepiece library (Kudo, Richardson, 2018). Decoding returns the normalised text. In
/// models trained with this class, pad is 0, unknown 1, start 2, end 3.
class SentencePieceTokenizer : public Tokenizer {
 public:
  /// Trains on `lines`. The same lines and options give the same model, byte for byte. Words of more than 256
  /// characters are split into several words. NUL characters are ignored. A unigram model may have fewer pieces than
  /// requested. Throws Error if an option is out of range, a line is not UTF-8, or the lines contain only white space
  /// and control characters. Throws Error if the vocabulary is too small for the characters or (bpe) too large for the
  /// words; the message contains the limit.
  SentencePieceTokenizer(const std::vector<std::string>& lines, const SentencePieceOptions& options);
  /// Reads a model from its bytes, as returned by model(). Throws Error if the bytes are not a model.
  explicit SentencePieceTokenizer(const std::string& model);
  /// Returns the same model with the tokens of a folder. An added token may take over the number of a piece with
  /// another text. Throws Error if an added token has another number than the tokenizer gives its text, or the number
  /// of another added token.
  SentencePieceTokenizer with_tokens(const PublishedTokens& published) const;

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;
  std::string decode(const Tokens& tokens) const override;
  std::vector<std::string> pieces(const Tokens& tokens) const override;
  std::int32_t pad() const override;
  std::int32_t unknown() const override;
  std::int32_t start() const override;
  std::int32_t end() const override;
  Tokens ends() const override;
  bool begins() const override;
  std::int32_t token_of(const std::string& piece) const override;
  std::string to_json() const override;
  /// Returns one file, STEM.model, which contains the model.
  std::vector<TokenizerFile> files(const std::string& stem) const override;
  std::string model() const { return model_; }  ///< The bytes of the model.

 private:
  struct Added;
  std::string model_;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
  std::shared_ptr<const Added> added_;  // null if there are no added tokens
  PublishedTokens published_;
  bool is_published_ = false;
};

/// Tokens and their types. BERT marks the two texts of a pair with the types 0 and 1.
struct TypedTokens {
  Tokens tokens, types;
};

/// A tokenizer.json in the format of Hugging Face's tokenizers: byte-level BPE (Llama 3, GPT-2), character-level BPE
/// (Llama 2, Gemma), Unigram (T5), WordPiece (BERT) or WordLevel, with normalizers, pre-tokenizers, decoders and
/// templates. `encode` recognises tokens that the file adds to the vocabulary, but not special tokens. Byte-level BPE
/// without a normalizer encodes any bytes.
class PublishedTokenizer : public Tokenizer {
 public:
  /// Reads the text of a tokenizer.json. Errors use `name` as its name. Throws FileError with the line if the text is
  /// damaged or uses unsupported features.
  explicit PublishedTokenizer(const std::string& json, const std::string& name = "tokenizer.json");
  /// Returns the same tokenizer with the tokens of a folder. Throws Error if an added token has another number than the
  /// tokenizer gives its text, or the number of another piece.
  PublishedTokenizer with_tokens(const PublishedTokens& published) const;

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;
  std::string decode(const Tokens& tokens) const override;  ///< The text without special tokens.
  /// The pieces as written in the vocabulary: "Ġthe".
  std::vector<std::string> pieces(const Tokens& tokens) const override;
  /// Encodes one text or a pair of texts with the special tokens of the file's template: [CLS] a [SEP] b [SEP].
  TypedTokens in_template(const std::vector<std::string>& texts) const;
  std::int32_t pad() const override { return published_.pad; }
  std::int32_t unknown() const override;
  std::int32_t start() const override { return published_.start; }
  std::int32_t end() const override { return published_.end; }
  Tokens ends() const override { return published_.ends.empty() ? Tokenizer::ends() : published_.ends; }
  bool begins() const override { return published_.begins; }
  std::int32_t token_of(const std::string& piece) const override;
  std::int32_t template_start() const;  ///< The special token that the template puts before a text. -1: none.
  std::int32_t template_end() const;    ///< The special token that the template puts after a text. -1: none.
  std::string to_json() const override;
  /// Returns the tokenizer.json as one file, STEM.published.json. For Gpt2Tokenizer, returns vocab.json and merges.txt
  /// for any stem.
  std::vector<TokenizerFile> files(const std::string& stem) const override;

 protected:
  struct Data;
  explicit PublishedTokenizer(std::shared_ptr<const Data> data);

 private:
  std::shared_ptr<const Data> data_;
  PublishedTokens published_;
  bool is_published_ = false;
};

struct Gpt2Options {
  bool end_in_text = false;   ///< Whether `<|endoftext|>` in a text is the end token. If false, it is plain text.
  bool prefix_space = false;  ///< Whether a text that does not begin with a space gets one.
};

/// GPT-2's tokenizer (Radford et al., 2019): byte-level BPE. Encodes any bytes, UTF-8 or not, and decodes to the same
/// bytes, except for end tokens. The tokens equal those of Hugging Face's tokenizers and of tiktoken. The Unicode
/// version of PCRE2 determines which characters are letters and numbers. The end token is `<|endoftext|>`, if the
/// vocabulary contains it.
class Gpt2Tokenizer : public PublishedTokenizer {
 public:
  /// Reads the two files published with GPT-2. `vocabulary` (vocab.json) is a JSON object from pieces to tokens, with
  /// bytes written as printable characters. `merges` (merges.txt) has a pair of pieces per line, starting with the
  /// earliest merge. Throws FileError, with the line if possible, if a file cannot be read, the tokens are not 0, 1, 2
  /// …, the piece of a byte is missing, or a merge contains an unknown piece.
  Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options = {});
};

}  // namespace xtape
