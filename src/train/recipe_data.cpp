// The parts of a recipe that say what is read: data, tokenizer, batches; and how translations are searched for.
#include "date_forms.hpp"
#include "number_words.hpp"
#include "recipe_parts.hpp"
#include "special_tokens.hpp"

namespace xtape::train {

namespace {
constexpr std::int64_t longest_row = 1 << 24;  // tokens

void read_split(Section& section, double& split) {
  section.read("split", split);
  if (!(split > 0 && split <= 1))
    section.fail("split", "must be above 0 and at most 1: the share of the text that trains");
}
}  // namespace

Recipe::Data read_data(Section section) {
  Recipe::Data data;
  section.need("kind");
  section.read("kind", data.kind);
  if (data.kind == "text") {
    if (!section.has("text")) section.fail("", "needs the key 'text', a file: give it with --set data.text=FILE");
    section.read("text", data.text);
    read_split(section, data.split);
    section.read("block_size", data.block_size, {1, longest_row});
    std::string windows = "random";
    section.read("windows", windows);
    if (windows != "random" && windows != "consecutive")
      section.fail("windows", R"(must be "random" or "consecutive", not ")" + windows + "\"");
    data.consecutive = windows == "consecutive";
  } else if (data.kind == "documents") {
    if (!section.has("text")) section.fail("", "needs the key 'text', a file: give it with --set data.text=FILE");
    section.read("text", data.text);
    read_split(section, data.split);
    std::string separator = "blank_line";
    section.read("separator", separator);
    if (separator != "blank_line" && separator != "line")
      section.fail("separator", R"(must be "blank_line" or "line", not ")" + separator + "\"");
    data.separator = separator == "line" ? DocumentEnd::line : DocumentEnd::blank_line;
    section.read("max_length", data.max_length, {0, longest_row});
  } else if (data.kind == "adder") {
    section.read("digits", data.adder.digits, {1, 3});
    section.read("held_out", data.adder.held_out, {1, AdderBatches::sums(data.adder.digits) - 1});
    section.read("reversed", data.adder.reversed);
    section.read("padded", data.adder.padded);
  } else if (data.kind == "parallel") {
    if (!section.has("folder"))
      section.fail("", "needs the key 'folder', where its files are: give it with --set data.folder=DIRECTORY");
    section.read("folder", data.folder);
    for (const auto& [key, file] : {std::pair{"source", &data.source},
                                    {"target", &data.target},
                                    {"validation_source", &data.validation_source},
                                    {"validation_target", &data.validation_target}}) {
      section.need(key);
      section.read(key, *file);
    }
    section.read("max_length", data.max_length, {0, longest_row});
  } else if (data.kind == "number_words") {
    section.read("held_out", data.numbers.held_out, {1, number_words_end - 1});
    section.read("training", data.numbers.training, {1, number_words_end - data.numbers.held_out});
  } else if (data.kind == "dates") {
    section.read("training", data.dates.training, {1, most_written_dates});
    section.read("held_out", data.dates.held_out, {1, dates_count - 1});
  } else {
    section.fail("kind", R"(must be "text", "documents", "adder", "parallel", "number_words" or "dates", not ")" +
                             data.kind + "\"");
  }
  section.done();
  return data;
}

TokenizerSettings read_tokenizer(Section section) {
  TokenizerSettings settings;
  section.read("kind", settings.kind);
  section.read("joint", settings.joint);
  if (settings.kind == "character") {
    std::string unknown = "error";
    section.read("unknown", unknown);
    if (unknown != "error" && unknown != "token")
      section.fail("unknown", "must be \"error\" or \"token\", not \"" + unknown + "\"");
    if (unknown == "token") settings.unknown = CharacterTokenizer::Unknown::token;
  } else if (settings.kind == "words") {
    section.read("minimum_count", settings.words.minimum_count, {.low = 1});
    section.read("lower_case", settings.words.lower_case);
    section.read("multiple", settings.words.multiple, {1, most_pieces});
    section.read("vocabulary", settings.vocabulary);
  } else if (settings.kind == "sentencepiece") {
    section.read("model", settings.pieces.model);
    if (settings.pieces.model != "unigram" && settings.pieces.model != "bpe")
      section.fail("model", "must be \"unigram\" or \"bpe\", not \"" + settings.pieces.model + "\"");
    section.read("vocabulary_size", settings.pieces.vocabulary_size, {special_token_count + 1, most_pieces});
    section.read("lower_case", settings.pieces.lower_case);
  } else if (settings.kind == "gpt2") {
    if (!section.has("vocab") || !section.has("merges"))
      section.fail("", "needs the keys 'vocab' and 'merges', the files vocab.json and merges.txt of GPT-2");
    section.read("vocab", settings.vocab);
    section.read("merges", settings.merges);
    section.read("end_in_text", settings.gpt2.end_in_text);
  } else if (settings.kind == "saved") {
    section.need("path");
    section.read("path", settings.path);
  } else {
    section.fail("kind",
                 R"(must be "character", "words", "sentencepiece", "gpt2" or "saved", not ")" + settings.kind + "\"");
  }
  section.done();
  return settings;
}

void read_batch(Section section, Recipe& recipe) {
  // A row of text has block_size tokens; of other data it is known once the data is.
  const std::int64_t columns = recipe.data.kind == "text" ? recipe.data.block_size : 1;
  const bool texts = recipe.data.has_texts();
  if (!texts) section.need("size");
  section.read("size", recipe.batch_size, {texts ? 0 : 1, most_batch_tokens / columns});
  if (texts) {
    section.read("tokens", recipe.batch_tokens, {0, most_batch_tokens});
    section.read("bucket", recipe.bucket, {1, longest_row});
    if ((recipe.batch_size > 0) == (recipe.batch_tokens > 0))
      section.fail("", "needs either the key 'size' (sentences) or 'tokens' (of a side), at least 1");
  }
  section.read("accumulate", recipe.trainer.accumulate, {.low = 1});
  section.done();
}

SearchOptions read_search(Section section) {
  SearchOptions options;
  section.read("beam_size", options.beam_size, {1, 4096});
  std::string penalty = name_of(options.length_penalty);
  section.read("length_penalty", penalty);
  try {
    options.length_penalty = length_penalty_named(penalty);
  } catch (const Error& error) {
    section.fail("length_penalty", std::string("is wrong: ") + error.what());
  }
  section.read("alpha", options.alpha);
  section.read("max_length", options.max_length, {1, longest_row});
  section.read("length_factor", options.length_factor);
  section.read("length_extra", options.length_extra, {0, longest_row});
  section.read("early_stopping", options.early_stopping);
  section.done();
  return options;
}

}  // namespace xtape::train
