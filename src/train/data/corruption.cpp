// Corrupted texts: the key of recipes, and the tokens that stand for what is taken out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
using Corruption = CorruptionOptions::Kind;
constexpr const char* mask_name = "[MASK]";
constexpr const char* other_mask_name = "<mask>";  // of RoBERTa
constexpr std::int64_t most_sentinels = 100;

std::string sentinel(std::int64_t number) {
  return "<extra_id_" + std::to_string(number) + ">";
}

const Bounds share = {std::numeric_limits<double>::denorm_min(), 1, "above 0 and below 1"};

void read_corruption(Section& section, const std::string& name, Recipe::Data& data) {
  if (!section.has(name)) return;
  CorruptionOptions& options = data.corruption;
  options.kind = Corruption::masked_lm;
  read_section(section.section(name), corruption_keys, options);
}

void read_rate(Section& section, const std::string& name, CorruptionOptions& options) {
  section.read(name, options.masks.rate, share);
  options.spans.rate = options.masks.rate;
}

void read_kind(Section& section, const std::string& name, CorruptionOptions& options) {
  section.read(name, options.kind, {"none", "masked_lm", "span_corruption"});
  if (options.kind == Corruption::none) section.fail(name, "must be \"masked_lm\" or \"span_corruption\"");
}

bool takes_spans(const CorruptionOptions& options) {
  return options.kind == Corruption::span_corruption;
}
bool takes_masks(const CorruptionOptions& options) {
  return options.kind == Corruption::masked_lm;
}

const Bounds probability = {0, std::nextafter(1, 2), "at least 0 and at most 1"};
}  // namespace

const Keys<CorruptionOptions> corruption_keys = {
    {{{"kind", R"(`"masked_lm"`, `"span_corruption"`)", "", "what models learn to restore", read_kind, needed},
      {"rate", "number, above 0 and below 1", "`0.15`", "the share of the tokens that are predicted", read_rate}}},
    {{{"masked", part(&CorruptionOptions::masks, &MaskedLmOptions::masked),
       "the share of them that become the mask token", probability},
      {"random", part(&CorruptionOptions::masks, &MaskedLmOptions::random),
       "the share of them that become random tokens; the rest stay as they are", probability}},
     "masked_lm",
     takes_masks},
    {{{"mean_span", part(&CorruptionOptions::spans, &SpanCorruptionOptions::mean_span),
       "the average number of tokens of a span", Bounds{.low = 1, .words = "at least 1"}}},
     "span_corruption",
     takes_spans}};

Key<Recipe::Data> corruption_key() {
  return {"corruption", "section", "", "parts of the texts are taken out, which the model learns to restore",
          read_corruption};
}

Tokenizers with_corruption(Tokenizers made, const Recipe& recipe) {
  const CorruptionOptions& options = recipe.data.corruption;
  if (options.kind == Corruption::none) return made;
  const std::string first = takes_masks(options) ? mask_name : sentinel(0);
  if (recipe.tokenizer.kind == "saved" && takes_spans(options) && is_folder(recipe.tokenizer.path))
    made.target = load_target_tokenizer(recipe.tokenizer.path);
  const bool known =
      made.source->token_of(first) >= 0 || (takes_masks(options) && made.source->token_of(other_mask_name) >= 0);
  if (known) return made;
  std::vector<std::string> names = {first};
  for (std::int64_t i = 1; takes_spans(options) && i < most_sentinels; ++i) names.push_back(sentinel(i));
  made.source = made.target = with_special_tokens(made.target, names, recipe);
  if (made.source->token_of(first) < 0)
    throw Error(
        "the tokenizer has no token '" + first +
        "', which 'data.corruption' needs: a tokenizer of kind \"sentencepiece\" gets it, and folders of models "
        "that restore texts have it");
  return made;
}

std::unique_ptr<Batches> corrupted(std::unique_ptr<Batches> batches, const Recipe& recipe,
                                   const Tokenizers& tokenizers) {
  CorruptionOptions options = recipe.data.corruption;
  if (options.kind == Corruption::none) return batches;
  const Tokenizer& source = *tokenizers.source;
  options.seed = recipe.trainer.seed;
  options.pad = std::max(0, source.pad());
  options.start = tokenizers.target->start();
  options.end = source.end();
  options.masks.vocabulary = source.size();
  for (const char* name : {other_mask_name, mask_name})
    if (source.token_of(name) >= 0) options.masks.mask = source.token_of(name);
  for (const std::int32_t token : {source.pad(), source.start(), source.end()})
    if (token >= 0) options.masks.kept.push_back(token);
  for (std::int64_t i = 0; source.token_of(sentinel(i)) >= 0; ++i)
    options.spans.sentinels.push_back(source.token_of(sentinel(i)));
  return std::make_unique<CorruptedBatches>(std::move(batches), options);
}

}  // namespace xtape::train
