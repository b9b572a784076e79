// The parts of a recipe that say what is read: data, tokenizer, batches; and how translations are searched for.
#include "recipe_parts.hpp"

namespace xtape::train {

Recipe::Data read_data(Section section) {
  Recipe::Data data;
  section.need("kind");
  section.read("kind", data.kind);
  if (data.kind == "text") {
    if (!section.has("text")) section.fail("", "needs the key 'text', a file: give it with --set data.text=FILE");
    section.read("text", data.text);
    section.read("split", data.split);
    section.read("block_size", data.block_size);
    std::string windows = "random";
    section.read("windows", windows);
    if (windows != "random" && windows != "consecutive")
      section.fail("windows", R"(must be "random" or "consecutive", not ")" + windows + "\"");
    data.consecutive = windows == "consecutive";
  } else if (data.kind == "documents") {
    if (!section.has("text")) section.fail("", "needs the key 'text', a file: give it with --set data.text=FILE");
    section.read("text", data.text);
    section.read("split", data.split);
    std::string separator = "blank_line";
    section.read("separator", separator);
    if (separator != "blank_line" && separator != "line")
      section.fail("separator", R"(must be "blank_line" or "line", not ")" + separator + "\"");
    data.separator = separator == "line" ? DocumentEnd::line : DocumentEnd::blank_line;
    section.read("max_length", data.max_length);
  } else if (data.kind == "adder") {
    section.read("digits", data.adder.digits);
    section.read("held_out", data.adder.held_out);
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
    section.read("max_length", data.max_length);
  } else if (data.kind == "number_words") {
    section.read("training", data.numbers.training);
    section.read("held_out", data.numbers.held_out);
  } else if (data.kind == "dates") {
    section.read("training", data.dates.training);
    section.read("held_out", data.dates.held_out);
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
    section.read("minimum_count", settings.words.minimum_count);
    section.read("lower_case", settings.words.lower_case);
    section.read("multiple", settings.words.multiple);
    if (settings.words.minimum_count < 1) section.fail("minimum_count", "must be at least 1");
    if (settings.words.multiple < 1) section.fail("multiple", "must be at least 1");
    section.read("vocabulary", settings.vocabulary);
  } else if (settings.kind == "sentencepiece") {
    section.read("model", settings.pieces.model);
    if (settings.pieces.model != "unigram" && settings.pieces.model != "bpe")
      section.fail("model", "must be \"unigram\" or \"bpe\", not \"" + settings.pieces.model + "\"");
    section.read("vocabulary_size", settings.pieces.vocabulary_size);
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
  section.read("size", recipe.batch_size);
  if (recipe.data.has_texts()) {
    section.read("tokens", recipe.batch_tokens);
    section.read("bucket", recipe.bucket);
    if (recipe.bucket < 1) section.fail("bucket", "must be at least 1");
    if ((recipe.batch_size > 0) == (recipe.batch_tokens > 0))
      section.fail("", "needs either the key 'size' (sentences) or 'tokens' (of a side), at least 1");
  } else if (recipe.batch_size < 1) {
    section.need("size");
    section.fail("size", "must be at least 1");
  }
  section.read("accumulate", recipe.trainer.accumulate);
  if (recipe.trainer.accumulate < 1) section.fail("accumulate", "must be at least 1");
  section.done();
}

SearchOptions read_search(Section section) {
  SearchOptions options;
  section.read("beam_size", options.beam_size);
  if (options.beam_size < 1) section.fail("beam_size", "must be at least 1");
  std::string penalty = name_of(options.length_penalty);
  section.read("length_penalty", penalty);
  try {
    options.length_penalty = length_penalty_named(penalty);
  } catch (const Error& error) {
    section.fail("length_penalty", std::string("is wrong: ") + error.what());
  }
  section.read("alpha", options.alpha);
  section.read("max_length", options.max_length);
  if (options.max_length < 1) section.fail("max_length", "must be at least 1");
  section.read("length_factor", options.length_factor);
  section.read("length_extra", options.length_extra);
  section.read("early_stopping", options.early_stopping);
  section.done();
  return options;
}

}  // namespace xtape::train
