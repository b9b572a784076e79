/// Text as numbers: what tokenizers do, and their kinds.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 8 && !defined(XTAPE_LAYER_IS_TEXT)
#error "this layer of xtape may not see the text layer"
#endif

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace xtape {

using Tokens = std::vector<std::int32_t>;

/// The most pieces that options may ask a vocabulary to have.
inline constexpr std::int64_t most_pieces = std::int64_t{1} << 20;

/// A file that belongs to a tokenizer, beside its JSON.
struct TokenizerFile {
  std::string name;
  std::string bytes;
};

/// Turns text into tokens, numbers in [0, size()), and back. `text` is UTF-8 throughout.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::int64_t size() const = 0;  ///< How many tokens there are: a model's vocabulary size.
  /// Never adds start or end. Throws Error where `text` is not UTF-8 or holds what the vocabulary does not and there is
  /// no unknown token for.
  virtual Tokens encode(const std::string& text) const = 0;
  /// Leaves out pad, start and end. Throws Error where a token is outside the vocabulary.
  virtual std::string decode(const Tokens& tokens) const = 0;
  /// Every token as it is written, for display, the special ones by their names. Throws as decode does.
  virtual std::vector<std::string> pieces(const Tokens& tokens) const;

  // The special tokens; -1 where there is none.
  virtual std::int32_t pad() const { return -1; }      ///< Fills up the rows of a batch.
  virtual std::int32_t unknown() const { return -1; }  ///< Stands for what the vocabulary does not hold.
  virtual std::int32_t start() const { return -1; }    ///< Stands before a text.
  virtual std::int32_t end() const { return -1; }      ///< Stands after a text.
  /// Whether a text that a model is to continue begins with `start`.
  virtual bool begins() const { return false; }

  virtual std::string to_json() const = 0;  ///< What load_tokenizer reads.
  /// What belongs to the tokenizer but not into its JSON; `stem` is the name of the JSON's file without ".json".
  virtual std::vector<TokenizerFile> files(const std::string& stem) const;

 protected:
  void check_token(std::int32_t token) const;  ///< Throws Error unless it is in the vocabulary.
};

/// Writes the tokenizer's JSON to `path`, and its files() beside it. Throws FileError, also where another tokenizer has
/// files of these names there.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& path);

/// The tokenizer that a file holds, of whatever kind; or of a folder as the Hugging Face Hub has them: of tokenizer.model
/// or spiece.model a SentencePieceTokenizer, else of tokenizer.json a BytePairTokenizer, with the special tokens that
/// tokenizer_config.json and config.json say; of vocab.json and merges.txt without these a Gpt2Tokenizer. Throws
/// FileError where the file, or what belongs beside it, is not one.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);
/// The tokenizer of such a folder for what its decoder writes: texts start with config.json's decoder_start_token_id.
std::unique_ptr<Tokenizer> load_target_tokenizer(const std::string& folder);

/// What a published folder says of its tokens, beside their pieces.
struct PublishedTokens {
  std::int32_t pad = -1, start = -1, end = -1;  ///< As Tokenizer's.
  bool begins = false;                          ///< As Tokenizer's.
  std::int64_t size = 0;  ///< How many tokens the model knows: those without a piece are left out of texts.
};

/// One token a character (Unicode code point).
class CharacterTokenizer : public Tokenizer {
 public:
  /// What becomes of characters that are not in the vocabulary.
  enum class Unknown : std::uint8_t {
    error,  ///< encode throws, naming the character and where it stands.
    token   ///< They become one more token, the last; it decodes as U+FFFD.
  };
  /// The vocabulary is the characters of `text`, in the order of their code points. With `special_tokens` pad 0,
  /// unknown 1, start 2 and end 3 stand before them, and unknown characters, if they may become a token, become
  /// number 1.
  explicit CharacterTokenizer(const std::string& text, Unknown unknown = Unknown::error, bool special_tokens = false);
  /// The same of the characters of `lines`.
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

  std::vector<char32_t> characters_;  // sorted: a character's place, counted from first(), is its token
  Unknown unknown_;
  bool special_tokens_;
};

struct WordOptions {
  std::int64_t minimum_count = 1;  ///< Words that occur less often than this are unknown.
  bool lower_case = false;         ///< Text is lower-cased before it is looked at.
  /// The vocabulary is filled up with `<fill0>`, `<fill1>`… to a multiple of this, which is at most most_pieces.
  std::int64_t multiple = 1;
};

/// One token a word, where words are what white space separates: for text that has been cut into words already. Pad is
/// number 0, unknown 1, start 2, end 3; the words follow. Decoding joins with single spaces and writes `<unk>`.
class WordTokenizer : public Tokenizer {
 public:
  /// The vocabulary is the words of `lines`, the frequent ones first, equally frequent ones in the order of their
  /// bytes. Throws Error where a line is not UTF-8 or an option makes no sense.
  explicit WordTokenizer(const std::vector<std::string>& lines, const WordOptions& options = {});
  /// The vocabulary is the first word of every line; what follows it (a count) is ignored. The words stay as they are
  /// written, and options.minimum_count plays no part. Throws Error, with the line, where one is empty or a word comes
  /// again.
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
  bool add(const std::string& word);  // false where the vocabulary holds it already
  void fill_up(std::int64_t multiple);

  bool lower_case_ = false;
  std::vector<std::string> words_;  // by token
  std::unordered_map<std::string, std::int32_t> tokens_;
};

struct SentencePieceOptions {
  std::string model = "unigram";        ///< "unigram" (Kudo, 2018) or "bpe" (Sennrich, Haddow, Birch, 2016).
  std::int64_t vocabulary_size = 8000;  ///< Special tokens included.
  bool lower_case = false;              ///< Text is case-folded (nmt_nfkc_cf) beyond its normalisation (nmt_nfkc).
};

/// Pieces of words by the sentencepiece library (Kudo, Richardson, 2018). Decoding gives the normalised text back. Pad
/// is number 0, unknown 1, start 2, end 3 where the model was trained here.
class SentencePieceTokenizer : public Tokenizer {
 public:
  /// Trains on `lines`; the same lines and options give the same model, byte for byte. Words of more than 256
  /// characters are learnt from as several words, and NUL characters are left out. Where a unigram model finds fewer
  /// pieces than asked for, it has those. Throws Error where the options make no sense, a line is not UTF-8, no line
  /// holds anything but white space and control characters, or the vocabulary size is too low for the characters, or,
  /// for bpe, too high for the words, with the limit.
  SentencePieceTokenizer(const std::vector<std::string>& lines, const SentencePieceOptions& options);
  /// From the bytes of a model, as model() gives them. Throws Error where they are not one.
  explicit SentencePieceTokenizer(const std::string& model);
  /// The same model with the special tokens that a folder says.
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
  std::int32_t token_of(const std::string& piece) const;  ///< -1 where it is none.
  std::string to_json() const override;
  /// The model, beside the JSON with the extension .model.
  std::vector<TokenizerFile> files(const std::string& stem) const override;
  std::string model() const { return model_; }  ///< The bytes of the model.

 private:
  std::string model_;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
  PublishedTokens published_;
  bool is_published_ = false;
};

struct Gpt2Options {
  bool end_in_text = false;  ///< `<|endoftext|>` in a text is the token end. Else it is text like any other.
};

/// GPT-2's tokens (Radford et al., 2019): pieces of words, merged from bytes. Any bytes can be encoded, and decode
/// gives them back exactly (UTF-8 or not), but for ends that were found in the text. The tokens are those of Hugging
/// Face's tokenizers and of tiktoken. What is a letter or a number is up to the Unicode that PCRE2 knows.
class Gpt2Tokenizer : public Tokenizer {
 public:
  /// From the two files that are published with GPT-2: `vocabulary` (vocab.json), a JSON object of tokens by pieces,
  /// in which bytes stand as printable characters, and `merges` (merges.txt), a pair of pieces a line, the earliest
  /// merge first. Throws FileError, with the line where there is one, where a file cannot be read or is wrong: the
  /// tokens are not the numbers from 0 on, the piece of a byte is missing, a merge names what is no piece.
  Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options = {});

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;  ///< Never throws.
  std::string decode(const Tokens& tokens) const override;
  std::vector<std::string> pieces(const Tokens& tokens) const override;  ///< As the vocabulary writes them: "Ġthe".
  std::int32_t end() const override;  ///< `<|endoftext|>`, where the vocabulary has it.
  std::string to_json() const override;
  /// vocab.json and merges.txt, whatever the stem.
  std::vector<TokenizerFile> files(const std::string& stem) const override;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
  Gpt2Options options_;
};

/// Byte-level byte-pair encoding as a tokenizer.json says it, in the format of Hugging Face's tokenizers: Llama 3, and
/// GPT-2 in that form. Any bytes can be encoded. Special tokens are never found in texts; what else the file adds to
/// the vocabulary is.
class BytePairTokenizer : public Tokenizer {
 public:
  /// From the text of such a file; `name` stands for it in errors. Throws FileError, with the line, where it is none,
  /// or asks for what is not done here: another model than byte-level BPE, a normalizer, more than one pattern of
  /// words.
  explicit BytePairTokenizer(const std::string& json, const std::string& name = "tokenizer.json");
  /// The same with the special tokens that a folder says.
  BytePairTokenizer with_tokens(const PublishedTokens& published) const;

  std::int64_t size() const override;
  Tokens encode(const std::string& text) const override;    ///< Never throws.
  std::string decode(const Tokens& tokens) const override;  ///< Leaves out all special tokens.
  std::vector<std::string> pieces(const Tokens& tokens) const override;
  std::int32_t pad() const override { return published_.pad; }
  std::int32_t start() const override { return published_.start; }
  std::int32_t end() const override { return published_.end; }
  bool begins() const override { return published_.begins; }
  std::int32_t token_of(const std::string& piece) const;  ///< -1 where it is none. Finds special tokens, too.
  std::string first_special() const;  ///< What the file puts in front of a text; "" where it is nothing.
  std::string to_json() const override;
  std::vector<TokenizerFile> files(const std::string& stem) const override;  ///< The file, as stem.published.json.

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
  PublishedTokens published_;
};

}  // namespace xtape
