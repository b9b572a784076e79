#include "recipe_parts.hpp"

#include <map>

#include "memory.hpp"
#include "nearest.hpp"
#include "special_tokens.hpp"
#include "xtape/error.hpp"

namespace xtape::train {

namespace {
/// The index of `name` in `names`. Fails if it is not there, and suggests the nearest name.
std::size_t place_of(const std::string& name, const std::vector<std::string>& names, const Section& section) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
    list += (i == 0 ? "" : ", ") + names[i];
  }
  section.fail("kind", "'" + name + "' is not known" + did_you_mean(name, names) + " (known: " + list + ")");
}

void check(const Section& section, const std::string& key, bool right, const std::string& range) {
  if (!right) section.fail(key, "must be " + range);
}
}  // namespace

OptimizerOptions read_optimizer(Section section) {
  OptimizerOptions options;
  std::string kind = "adamw";
  section.need("kind");
  section.read("kind", kind);
  options.kind = static_cast<OptimizerOptions::Kind>(place_of(kind, {"sgd", "adam", "adamw"}, section));
  if (options.kind == OptimizerOptions::Kind::sgd) {
    section.read("momentum", options.momentum);
    check(section, "momentum", options.momentum >= 0 && options.momentum < 1, "in [0, 1)");
  } else {
    const Json& betas = section.value("betas");
    if (!betas.is_null()) {
      if (!betas.is_array() || betas.size() != 2 || !betas[0].is_number() || !betas[1].is_number())
        section.fail("betas", "must be a list of two numbers, not " + betas.dump());
      options.beta1 = betas[0];
      options.beta2 = betas[1];
      const auto right = [](double beta) { return beta >= 0 && beta < 1; };
      check(section, "betas", right(options.beta1) && right(options.beta2), "two numbers in [0, 1)");
    }
    section.read("epsilon", options.epsilon);
    check(section, "epsilon", static_cast<float>(options.epsilon) > 0, "above 0, in float32 too");
  }
  section.read("weight_decay", options.weight_decay);
  check(section, "weight_decay", options.weight_decay >= 0, "at least 0");
  section.read("decay_all", options.decay_all);
  section.done();
  return options;
}

ScheduleOptions read_schedule(Section section, const Trainer::FitOptions& fit) {
  using Kind = ScheduleOptions::Kind;
  ScheduleOptions options;
  options.steps = fit.steps;
  std::string kind;
  section.need("kind");
  section.need("rate");
  section.read("kind", kind);
  options.kind = static_cast<Kind>(place_of(kind, {"constant", "linear", "cosine", "inverse_sqrt", "noam"}, section));
  section.read("rate", options.rate);
  check(section, "rate", options.rate >= 0, "at least 0");
  if (options.kind == Kind::noam) options.warmup = 4000;  // as published
  section.read("warmup", options.warmup);
  if (options.kind == Kind::linear || options.kind == Kind::cosine) {
    section.read("final_rate", options.final_rate);
    check(section, "final_rate", options.final_rate >= 0, "at least 0");
    section.read("steps", options.steps);
    if (options.steps == 0) options.epochs = fit.epochs;
  }
  if (options.kind == Kind::noam) {
    section.read("width", options.width, {.low = 1});
  }
  section.done();
  try {
    if (options.epochs == 0) rate_at(options, 1);
  } catch (const Error& error) {
    section.fail("", std::string("is wrong: ") + error.what());
  }
  return options;
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

Precision read_precision(Section& root) {
  std::string name = name_of(Precision::float32);
  root.read("precision", name);
  try {
    return precision_named(name);
  } catch (const Error& error) {
    root.fail("precision", std::string("is wrong: ") + error.what());
  }
}

std::size_t read_memory(Section& root) {
  if (!root.has("memory")) return 0;
  const Json& value = root.value("memory");
  const auto bytes = value.is_string() ? bytes_in(value.get<std::string>()) : std::nullopt;
  if (!bytes)
    root.fail("memory", "must be a size such as \"300 MiB\", not " + value.dump() + "; the units are " + byte_units);
  return *bytes;
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
