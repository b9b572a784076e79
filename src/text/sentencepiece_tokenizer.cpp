#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "special_tokens.hpp"
#include "utf8.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

namespace {

using sentencepiece::SentencePieceProcessor;
using sentencepiece::util::Status;

/// Lines in memory, as the library's trainer wants to see them.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  std::size_t at_ = 0;
};

/// The library's message without the place in its sources: "file.cc(line) [condition] message".
std::string message_of(const Status& status) {
  const std::string message = status.message();
  const std::size_t condition = message.rfind("] ");
  return condition == std::string::npos || condition + 2 == message.size() ? message : message.substr(condition + 2);
}

/// The number behind `words` in the library's message; "" where they are not in it.
std::string number_behind(const std::string& words, const std::string& message) {
  const std::size_t found = message.find(words);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + words.size();
  return message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
}

std::string train(const std::vector<std::string>& lines, const SentencePieceOptions& options) {
  if (options.model != "unigram" && options.model != "bpe")
    throw Error("a sentencepiece model is \"unigram\" or \"bpe\", not \"" + options.model + "\"");
  const std::string size = std::to_string(options.vocabulary_size);
  if (options.vocabulary_size <= special_token_count || options.vocabulary_size > INT32_MAX)
    throw Error("a vocabulary of " + size + " pieces makes no sense");
  bool empty = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      check_utf8(lines[i]);
    } catch (const Error& error) {
      throw Error("line " + std::to_string(i + 1) + " of the text: " + error.what());
    }
    empty = empty && lines[i].empty();
  }
  if (empty) throw Error("there is no text to train a sentencepiece model on");

  Lines sentences(lines);
  std::string model;
  // All lines are read, in their order and by one thread, so that nothing is left to chance. (By itself the library
  // leaves out lines of more than 4192 bytes.)
  const Status status = sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", options.model},
       {"vocab_size", size},
       {"hard_vocab_limit", options.model == "bpe" ? "true" : "false"},
       {"normalization_rule_name", options.lower_case ? "nmt_nfkc_cf" : "nmt_nfkc"},
       {"character_coverage", "1.0"},
       {"pad_id", std::to_string(pad_token)},
       {"unk_id", std::to_string(unknown_token)},
       {"bos_id", std::to_string(start_token)},
       {"eos_id", std::to_string(end_token)},
       {"num_threads", "1"},
       {"shuffle_input_sentence", "false"},
       {"max_sentence_length", "1073741824"},
       {"minloglevel", "2"}},
      &sentences, &model);
  if (status.ok()) return model;
  const std::string message = message_of(status);
  const std::string highest = number_behind("a value <= ", message);
  if (!highest.empty())
    throw Error("the text has too few words for " + size + " " + options.model + " pieces; the most it gives is " +
                highest);
  const std::string lowest = number_behind(size + " vs ", message);
  if (!lowest.empty())
    throw Error(size + " pieces are too few to hold every character of the text; it needs at least " + lowest);
  throw Error("training a sentencepiece model failed: " + message);
}

void check(const Status& status) {
  if (!status.ok()) throw Error("sentencepiece: " + message_of(status));
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(const std::vector<std::string>& lines,
                                               const SentencePieceOptions& options)
    : SentencePieceTokenizer(train(lines, options)) {}

SentencePieceTokenizer::SentencePieceTokenizer(const std::string& model) : model_(model) {
  auto processor = std::make_shared<SentencePieceProcessor>();
  if (!processor->LoadFromSerializedProto(model).ok())
    throw Error("these " + std::to_string(model.size()) + " bytes are not a sentencepiece model");
  processor_ = std::move(processor);
}

std::int64_t SentencePieceTokenizer::size() const {
  return processor_->GetPieceSize();
}

Tokens SentencePieceTokenizer::encode(const std::string& text) const {
  check_utf8(text);
  Tokens tokens;
  check(processor_->Encode(text, &tokens));
  return tokens;
}

std::string SentencePieceTokenizer::decode(const Tokens& tokens) const {
  for (const std::int32_t token : tokens) check_token(token);
  std::string text;
  check(processor_->Decode(tokens, &text));
  return text;
}

std::vector<std::string> SentencePieceTokenizer::pieces(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    check_token(token);
    pieces.push_back(processor_->IdToPiece(token));
  }
  return pieces;
}

std::int32_t SentencePieceTokenizer::pad() const {
  return processor_->pad_id();
}
std::int32_t SentencePieceTokenizer::unknown() const {
  return processor_->unk_id();
}
std::int32_t SentencePieceTokenizer::start() const {
  return processor_->bos_id();
}
std::int32_t SentencePieceTokenizer::end() const {
  return processor_->eos_id();
}

std::string SentencePieceTokenizer::to_json() const {
  // The pieces are the model's; what stands here tells another model, or a part of this one, from it.
  const nlohmann::ordered_json json = {
      {"xtape", 1},
      {"kind", "sentencepiece"},
      {"pieces", size()},
      {"model",
       {{"bytes", model_.size()},
        {"crc32", crc32_z(0, reinterpret_cast<const Bytef*>(model_.data()), model_.size())}}}};
  return json.dump(2) + "\n";
}

std::vector<TokenizerFile> SentencePieceTokenizer::files(const std::string& stem) const {
  return {{stem + ".model", model_}};
}

}  // namespace xtape
