#include <algorithm>

#include "base/messages/wording.hpp"
#include "ranks/shared_work.hpp"
#include "train/predict/predict.hpp"
#include "xtape/bleu.hpp"

namespace xtape::train {

namespace {
/// Text of word tokenizers is split at spaces. Other text uses sacreBLEU's tokenization "13a". If the tokenizer
/// lower-cases, the comparison ignores case, because the model cannot write capital letters.
BleuOptions bleu_options(const TokenizerSettings& settings) {
  if (settings.kind == "words") return {"none", settings.words.lower_case};
  return {"13a", settings.kind == "sentencepiece" && settings.pieces.lower_case};
}
}  // namespace

Tokens prompt_tokens(const Recipe& recipe, const Tokenizer& tokenizer, const std::string& text) {
  if (!recipe.data.has_rows()) return prompt_of(tokenizer, text);
  Tokens tokens = tokenizer.encode(text);
  tokens.insert(tokens.begin(), tokenizer.start());
  return tokens;
}

Tokens end_tokens(const Tokenizer& tokenizer) {
  Tokens all = tokenizer.ends();
  if (tokenizer.end() >= 0 && !contains(all, tokenizer.end())) all.push_back(tokenizer.end());
  return all;
}

std::vector<std::string> continued(const Recipe& recipe, Model& model, const Tokenizer& tokenizer,
                                   const PairTexts& answers, std::int64_t columns, ranks::RankGroup& group,
                                   const std::function<void()>& between) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.end_tokens = end_tokens(tokenizer);
  options.context = columns;
  options.batch_size = 64;
  options.tokens = 0;
  const ranks::SharedWork work(group, answers.source.size(), static_cast<std::size_t>(options.batch_size));
  std::vector<Tokens> prompts;
  for (std::size_t i = 0; i < answers.source.size(); ++i) {
    if (work.is_here(i)) prompts.push_back(prompt_tokens(recipe, tokenizer, answers.source[i]));
    const auto needed = static_cast<std::int64_t>(tokenizer.encode(answers.target[i]).size()) + 1;
    options.tokens = std::max(options.tokens, needed);
  }
  const auto each = [&](std::int64_t, std::int32_t) {
    if (between) between();
    return false;
  };
  std::vector<std::string> made;
  for (Tokens& tokens : generate_batch(model, prompts, options, each)) {
    if (!tokens.empty() && contains(options.end_tokens, tokens.back())) tokens.pop_back();
    made.push_back(tokenizer.decode(tokens));
  }
  return work.gather(made);
}

void compare(const Recipe& recipe, const std::vector<std::string>& made, const std::vector<std::string>& right,
             Evaluation& evaluation) {
  if (recipe.measure_bleu) evaluation.bleu = corpus_bleu(made, right, bleu_options(recipe.tokenizer)).score;
  if (!recipe.measure_exact_match) return;
  std::int64_t equal = 0;
  for (std::size_t i = 0; i < made.size(); ++i) equal += made[i] == right[i] ? 1 : 0;
  evaluation.questions = std::ssize(made);
  evaluation.exact_match = static_cast<double>(equal) / static_cast<double>(made.size());
}

}  // namespace xtape::train
