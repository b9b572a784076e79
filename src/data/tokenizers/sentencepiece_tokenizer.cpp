#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "data/arrays/npz.hpp"
#include "data/tables/fields.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_counts.hpp"
#include "data/tokenizers/word_models.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

namespace {

using sentencepiece::SentencePieceProcessor;
using sentencepiece::util::Status;

/// Iterates over lines in a form that is safe for the library's trainer. The trainer aborts or crashes on words of
/// about ten thousand characters, and treats a NUL character as the end of a sentence.
class Lines : public sentencepiece::SentenceIterator {
 public:
  /// With `counts`, each line is a word, of which the text has so many, and sentences are in the trainer's format tsv.
  explicit Lines(const std::vector<std::string>& lines, const std::vector<std::int64_t>& counts = {})
      : lines_(lines), counts_(counts) {
    Next();
  }
  bool done() const override { return done_; }
  const std::string& value() const override { return sentence_; }
  Status status() const override { return {}; }

  /// Reads the next sentence, which is the rest of a line or a part of it. It ends early if a word gets too long. A
  /// long sentence ends between words, because the library needs dozens of bytes for each byte of a sentence. Pieces
  /// never extend over spaces, so this does not change the pieces. NUL characters are dropped.
  void Next() override {
    constexpr int longest_word = 256;               // characters; pieces have at most 16 characters
    constexpr std::size_t long_sentence = 1 << 16;  // bytes
    done_ = line_ == lines_.size();
    if (done_) return;
    const std::string& line = lines_[line_];
    sentence_.clear();
    int word = 0;
    while (byte_ < line.size() && word < longest_word) {
      const std::size_t begin = byte_;
      const char32_t character = next_character(line, byte_);
      const bool space = is_space(character);
      if (space && sentence_.size() > long_sentence) break;
      word = space ? 0 : word + 1;
      if (character != U'\0') sentence_.append(line, begin, byte_ - begin);
    }
    if (!counts_.empty()) sentence_ += "\t" + std::to_string(counts_[line_]);
    if (byte_ < line.size()) return;
    ++line_;
    byte_ = 0;
  }

 private:
  const std::vector<std::string>& lines_;
  std::vector<std::int64_t> counts_;
  std::size_t line_ = 0, byte_ = 0;  // the position at which the next sentence begins
  std::string sentence_;
  bool done_ = false;
};

/// Returns the library's message without its prefix: the "message" in "file.cc(line) [condition] message".
std::string message_of(const Status& status) {
  const std::string message = status.message();
  const std::size_t condition = message.rfind("] ");
  return condition == std::string::npos || condition + 2 == message.size() ? message : message.substr(condition + 2);
}

/// Returns the digits after `words` in the library's message, or "" if the message does not contain `words`.
std::string number_behind(const std::string& words, const std::string& message) {
  const std::size_t found = message.find(words);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + words.size();
  return message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
}

/// Trains a model of the given type on the lines. For `counts`, see Lines.
Status train(const std::vector<std::string>& lines, const std::string& type, std::int64_t size, bool lower_case,
             std::string& model, const std::vector<std::int64_t>& counts = {}) {
  Lines sentences(lines, counts);
  // The result must be deterministic, so a single thread reads all lines in order. (By default the library skips lines
  // of more than 4192 bytes.)
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", type},
      {"vocab_size", std::to_string(size)},
      {"hard_vocab_limit", type == "bpe" ? "true" : "false"},
      {"normalization_rule_name", lower_case ? "nmt_nfkc_cf" : "nmt_nfkc"},
      {"character_coverage", "1.0"},
      {"pad_id", std::to_string(pad_token)},
      {"unk_id", std::to_string(unknown_token)},
      {"bos_id", std::to_string(start_token)},
      {"eos_id", std::to_string(end_token)},
      {"num_threads", "1"},
      {"shuffle_input_sentence", "false"},
      {"max_sentence_length", "1073741824"},
      {"minloglevel", "2"}};
  if (!counts.empty()) settings["input_format"] = "tsv";
  return sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
}

void check(const Status& status) {
  if (!status.ok()) throw Error("sentencepiece: " + message_of(status));
}

/// Returns whether a line contains more than spaces after normalisation. If no line does, the trainer aborts the
/// program. A model of the letter "a" checks this, because it normalises in the same way as the trainer.
bool holds_text(const std::vector<std::string>& lines, bool lower_case) {
  const std::string space = "\u2581";
  std::string model;
  check(train({"a"}, "char", special_token_count + 2, lower_case, model));
  SentencePieceProcessor processor;
  check(processor.LoadFromSerializedProto(model));
  for (Lines sentences(lines); !sentences.done(); sentences.Next()) {
    std::vector<std::string> pieces;
    check(processor.Encode(sentences.value(), &pieces));
    for (const std::string& piece : pieces)
      for (std::size_t at = 0; at < piece.size(); at += space.size())
        if (piece.compare(at, space.size(), space) != 0) return true;
  }
  return false;
}

std::string trained(const std::vector<std::string>& lines, const SentencePieceOptions& options,
                    const std::vector<std::int64_t>& counts = {}) {
  if (options.model != "unigram" && options.model != "bpe")
    throw Error("a sentencepiece model must be \"unigram\" or \"bpe\", not \"" + options.model + "\"");
  const std::string size = std::to_string(options.vocabulary_size);
  if (options.vocabulary_size <= special_token_count || options.vocabulary_size > most_pieces)
    throw Error("a vocabulary must have " + std::to_string(special_token_count + 1) + " to " +
                std::to_string(most_pieces) + " pieces, not " + size);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      check_utf8(lines[i]);
    } catch (const Error& error) {
      throw Error("line " + std::to_string(i + 1) + " of the text: " + error.what());
    }
  }
  if (!holds_text(lines, options.lower_case)) throw Error("there is no text to train a sentencepiece model on");
  std::string model;
  const Status status = train(lines, options.model, options.vocabulary_size, options.lower_case, model, counts);
  if (status.ok()) return model;
  const std::string message = message_of(status);
  const std::string highest = number_behind("a value <= ", message);
  if (!highest.empty())
    throw Error("the text has too few words for " + size + " " + options.model + " pieces; the maximum is " + highest);
  const std::string lowest = number_behind(size + " vs ", message);
  if (!lowest.empty())
    throw Error(size + " pieces are too few for all characters of the text; the minimum is " + lowest);
  throw Error("training a sentencepiece model failed: " + message);
}

}  // namespace

std::string sentencepiece_model(const RankedWords& words, const SentencePieceOptions& options) {
  std::vector<std::string> lines;
  std::vector<std::int64_t> counts;
  for (const auto& [word, count] : words) {
    lines.push_back(word);
    counts.push_back(count);
  }
  return trained(lines, options, counts);
}

SentencePieceTokenizer::SentencePieceTokenizer(const std::vector<std::string>& lines,
                                               const SentencePieceOptions& options)
    : SentencePieceTokenizer(trained(lines, options)) {}

SentencePieceTokenizer::SentencePieceTokenizer(const std::string& model) : model_(model) {
  auto processor = std::make_shared<SentencePieceProcessor>();
  if (!processor->LoadFromSerializedProto(model).ok())
    throw Error("these " + std::to_string(model.size()) + " bytes are not a sentencepiece model");
  processor_ = std::move(processor);
}

/// The tokens that a folder adds to the pieces.
struct SentencePieceTokenizer::Added {
  AddedTokens in_text;
  std::map<std::int32_t, AddedToken> by_token;
  TextMap<std::int32_t> by_content;
  SentencePieceProcessor inside;  // the same model for a text after an added token: adds and removes no spaces

  explicit Added(const std::string& model) {
    // In the format of the model, a later value of a field replaces an earlier one. These bytes are the field
    // normalizer_spec with add_dummy_prefix and remove_extra_whitespaces set to false.
    check(inside.LoadFromSerializedProto(model + std::string("\x1a\x04\x18\x00\x20\x00", 6)));
  }
  const AddedToken* find(std::int32_t token) const {
    const auto found = by_token.find(token);
    return found == by_token.end() ? nullptr : &found->second;
  }
};

SentencePieceTokenizer SentencePieceTokenizer::with_tokens(const PublishedTokens& published) const {
  SentencePieceTokenizer tokenizer = *this;
  tokenizer.published_ = published;
  tokenizer.is_published_ = true;
  if (published.added.empty()) return tokenizer;
  const auto added = std::make_shared<Added>(model_);
  for (const AddedToken& token : published.added) {
    const auto content = added->by_content.find(token.content);
    const AddedToken* same = added->find(token.token);
    check_added(token, content != added->by_content.end() ? content->second : token_of(token.content),
                same != nullptr ? same->content : "");
    added->by_content.insert_or_assign(token.content, token.token);
    added->by_token.insert_or_assign(token.token, token);
  }
  for (const auto& each : added->by_token) {
    added->in_text.add(each.second.content, each.second);
    tokenizer.published_.size = std::max(tokenizer.published_.size, std::int64_t{each.first} + 1);
  }
  tokenizer.added_ = added;
  return tokenizer;
}

std::int64_t SentencePieceTokenizer::size() const {
  return std::max<std::int64_t>(held(processor_).GetPieceSize(), published_.size);
}

Tokens SentencePieceTokenizer::encode(const std::string& text) const {
  check_utf8(text);
  Tokens tokens;
  if (!added_) {
    check(held(processor_).Encode(text, &tokens));
    return tokens;
  }
  added_->in_text.cut(text, [&](std::string_view part, std::int32_t token) {
    Tokens made = {token};
    const bool begins = published_.spaced || part.data() == text.data();
    if (token < 0) check((begins ? *processor_ : added_->inside).Encode(part, &made));
    tokens.insert(tokens.end(), made.begin(), made.end());
  });
  return tokens;
}

std::string SentencePieceTokenizer::decode(const Tokens& tokens) const {
  const SentencePieceProcessor& processor = held(processor_);
  std::string text;
  Tokens written;  // the tokens after the last added token that have a piece
  bool inside = false;
  const auto write = [&] {
    std::string part;
    check((inside ? added_->inside : processor).Decode(written, &part));
    text += part;
    written.clear();
  };
  for (const std::int32_t token : tokens) {
    check_token(token);
    const AddedToken* added = added_ ? added_->find(token) : nullptr;
    if (added != nullptr && !added->special) {
      write();
      text += added->content;
      inside = true;
    } else if (added == nullptr && token < processor.GetPieceSize()) {
      written.push_back(token);
    }
  }
  write();
  return text;
}

std::vector<std::string> SentencePieceTokenizer::pieces(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    check_token(token);
    const AddedToken* added = added_ ? added_->find(token) : nullptr;
    pieces.push_back(added != nullptr                          ? added->content
                     : token < held(processor_).GetPieceSize() ? held(processor_).IdToPiece(token)
                                                               : unnamed_piece(token));
  }
  return pieces;
}

std::int32_t SentencePieceTokenizer::pad() const {
  return is_published_ ? published_.pad : held(processor_).pad_id();
}
std::int32_t SentencePieceTokenizer::unknown() const {
  return held(processor_).unk_id();
}
std::int32_t SentencePieceTokenizer::start() const {
  return is_published_ ? published_.start : held(processor_).bos_id();
}
std::int32_t SentencePieceTokenizer::end() const {
  return is_published_ ? published_.end : held(processor_).eos_id();
}
Tokens SentencePieceTokenizer::ends() const {
  return published_.ends.empty() ? Tokenizer::ends() : published_.ends;
}
bool SentencePieceTokenizer::begins() const {
  return published_.begins;
}
std::int32_t SentencePieceTokenizer::token_of(const std::string& piece) const {
  if (added_)
    if (const auto found = added_->by_content.find(piece); found != added_->by_content.end()) return found->second;
  const int token = held(processor_).PieceToId(piece);  // the unknown token if the piece does not exist
  return held(processor_).IdToPiece(token) == piece ? token : -1;
}

std::string SentencePieceTokenizer::to_json() const {
  // The model contains the pieces. The size and the checksum detect a model that is different or incomplete.
  nlohmann::ordered_json json = {{"xtape", 1},
                                 {"kind", "sentencepiece"},
                                 {"pieces", held(processor_).GetPieceSize()},
                                 {"model", {{"bytes", model_.size()}, {"crc32", crc32_of(model_)}}}};
  if (is_published_) json["published"] = json_of(published_);
  return json.dump(2) + "\n";
}

std::vector<TokenizerFile> SentencePieceTokenizer::files(const std::string& stem) const {
  held(processor_);  // throws if the object was moved from
  return {{stem + ".model", model_}};
}

}  // namespace xtape
