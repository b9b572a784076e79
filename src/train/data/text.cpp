// Data of kind "text": one long text, or files of its tokens, which is cut into blocks.
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "data/tables/json_lines.hpp"
#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_counts.hpp"
#include "train/data/data_kind.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
/// Returns the words of a text between the white space of ASCII.
RankedWords ascii_words(const LongText& text) {
  WordCounts counts;
  std::string word;
  text.read_words([&](const std::string& piece) {
    const auto end_word = [&] {
      if (!word.empty()) counts.add(word);
      word.clear();
    };
    for (const char byte : piece) {
      if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
        end_word();
      else if (byte != '\0')
        word += byte;
    }
    end_word();
  });
  return counts.ranked();
}

WordTokenizer word_tokenizer(const LongText& text, const WordOptions& options) {
  WordCounts counts;
  text.read_words([&](const std::string& piece) {
    for (const std::string& word : words_in(piece)) counts.add(options.lower_case ? lower_cased(word) : word);
  });
  std::vector<std::string> vocabulary;
  for (auto& [word, count] : counts.ranked())
    if (count >= options.minimum_count) vocabulary.push_back(word);
  return WordTokenizer::with_vocabulary(vocabulary, options);
}

/// Trains on a text that is short enough, and on the counts of the words of a longer one.
SentencePieceTokenizer sentencepiece_tokenizer(const LongText& text, const SentencePieceOptions& options) {
  constexpr std::size_t short_enough = std::size_t{32} << 20;
  std::string whole;
  text.read([&](std::string_view piece) {
    if (whole.size() <= short_enough) whole += piece;
  });
  if (whole.size() <= short_enough) return {{whole}, options};
  return SentencePieceTokenizer(sentencepiece_model(ascii_words(text), options));
}

/// Makes a tokenizer of a text, in memory for its words or characters.
std::shared_ptr<const Tokenizer> tokenizer_of(const LongText& text, const Recipe& recipe) {
  const TokenizerSettings& settings = recipe.tokenizer;
  if (settings.kind == "character") return make_tokenizer(recipe, {characters_of(text)});
  try {
    if (settings.kind == "words") return std::make_shared<WordTokenizer>(word_tokenizer(text, settings.words));
    return std::make_shared<SentencePieceTokenizer>(sentencepiece_tokenizer(text, settings.pieces));
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    text.fail_at_line(check_utf8, error.what());
  }
}

/// Returns the texts of the rows of a file of JSON Lines, one after the other.
std::string text_of_field(const Recipe::Data& data, const std::string& file) {
  const RowTexts rows = read_json_lines(file, {{field_of(data, "text")}}, data.reading);
  std::string all;
  for (const std::string& text : rows.columns[0]) {
    all += text;
    if (!all.empty() && all.back() != '\n') all += '\n';
  }
  return all;
}

struct TextData final : DataKind {
  TextData() : DataKind({.name = "text", .task = Task::texts, .title = "texts", .has_rows = false}) {
    using Data = Recipe::Data;
    keys = {
        {{file_key("text", "a file or several, of text or of tokens"),
          {"block_size", &Data::block_size, "the number of tokens of a training row", Range{1, longest_row}},
          {"windows", &Data::order,
           "blocks begin at random positions, or where the previous block ended, or are those of an epoch in random "
           "order",
           Names{"random", "consecutive", "shuffled"}},
          {"token_type", &Data::token_type,
           "the files are tokens of this type, little-endian, without a header that xtape knows",
           Names{"", "uint8", "uint16", "uint32", "int32", "int64"}, may_change},
          {"skip_bytes", &Data::skip_bytes, "the bytes before the tokens in such files", Range{.low = 0}, may_change},
          fields_key({"text"}),
          corruption_key()}}};
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    const std::string& file = part.files[0];
    if (!data.fields.empty()) return split.text.add_text(file, text_of_field(data, file));
    const bool has_tokens = !data.token_type.empty() || is_token_file(file);
    if (has_tokens ? split.text.has_files() : split.tokens != nullptr)
      throw Error(file + " has " + (has_tokens ? "tokens" : "text") + ", but the files before it have " +
                  (has_tokens ? "text" : "tokens") + ": tokenise all files of a split, or none");
    if (!has_tokens) return split.text.add(file, data.reading);
    const auto more = open_tokens(file, {data.token_type, data.skip_bytes});
    if (!split.tokens) {
      split.tokens = more;
      return;
    }
    const std::int64_t size = split.tokens->size() + more->size();
    split.tokens = part_of_joined({split.tokens, more}, 0, size);
  }

  void complete(const Recipe&, const Batches&, Json&) const override {}

  void divide(const Recipe::Data& data, DataSplit& training, DataSplit& validation) const override {
    if (training.tokens) {
      const std::int64_t size = training.tokens->size();
      const auto place = static_cast<std::int64_t>(static_cast<double>(size) * data.split);
      validation.tokens = part_of_joined({training.tokens}, place, size);
      training.tokens = part_of_joined({training.tokens}, 0, place);
    } else {
      validation.text = training.text.divide(data.split);
    }
  }

  Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const override {
    const bool from_text = is_made(recipe.tokenizer);
    if (from_text && training.tokens)
      throw Error(training.parts[0].files[0] + " has tokens, from which no tokenizer can be made: give the one that " +
                  "made them, as \"tokenizer\": {\"kind\": \"saved\", \"path\": …}");
    Tokenizers made;
    made.source = made.target = from_text ? tokenizer_of(training.text, recipe) : make_tokenizer(recipe, {});
    return with_corruption(std::move(made), recipe);
  }

  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, const DataSplit& training,
                                   const DataSplit& evaluated) const override {
    return corrupted(
        std::make_unique<TextBatches>(
            tokens_of(training, *tokenizers.target), tokens_of(evaluated, *tokenizers.target),
            TextBatchesOptions{recipe.batch_size, recipe.data.block_size, recipe.trainer.seed, recipe.data.order}),
        recipe, tokenizers);
  }
};
}  // namespace

const DataKind& text_data() {
  static const TextData kind;
  return kind;
}

}  // namespace xtape::train
