#include <algorithm>
#include <numeric>

#include "base/messages/wording.hpp"
#include "ranks/rank_group.hpp"
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

bool reads(const Model& model, const std::string& function, const std::string& input) {
  if (!contains(model.functions(), function)) return false;
  const std::vector<FunctionInput>& inputs = model.signature(function).inputs;
  return std::ranges::any_of(inputs, [&](const FunctionInput& each) { return each.name == input; });
}

namespace {
std::string described(const Model& model) {
  const auto name = [](const FunctionInput& input) { return input.name; };
  return contains(model.functions(), "logits")
             ? "the model has logits(" + joined(model.signature("logits").inputs, name) + ")"
             : "the model has no function 'logits'";
}

bool has_inputs(const Model& model, std::size_t count) {
  return reads(model, "logits", "tokens") && model.signature("logits").inputs.size() == count;
}
}  // namespace

void check_continues(const Model& model, const Tokenizer& tokenizer) {
  if (reads(model, "logits", "source")) throw Error("the model translates: use xtape translate");
  if (!has_inputs(model, 1)) throw Error(described(model) + ", and only logits(tokens) continues texts");
  Tape tape(Mode::eval);
  NamedSizes sizes;
  for (const std::string& name : model.signature("logits").sizes) sizes.add(name, sizes.size() + 1);
  const Shape shape = model.record(tape, "logits", model.inputs(tape, "logits", sizes))[0].value.shape();
  if (shape.size() != 3 || shape[1] != 2 || shape[2] < tokenizer.size())
    throw Error("logits(tokens) is " + to_string(shape) + " for tokens (1, 2), and only (1, 2, vocabulary) continues " +
                "texts: the tokenizer has " + std::to_string(tokenizer.size()) + " tokens");
}

void check_translates(const Model& model, const Tokenizer& target) {
  if (!reads(model, "logits", "source") || !has_inputs(model, 2))
    throw Error(described(model) + ", and only logits(source, tokens) translates" +
                (has_inputs(model, 1) ? ": use xtape generate" : ""));
  if (target.start() < 0 || end_tokens(target).empty())
    throw Error("the tokenizer has no start or no end token for targets, which begin and end a translation: a folder " +
                std::string("names them in config.json, \"decoder_start_token_id\" and \"eos_token_id\""));
}

bool begins(const Recipe& recipe, const Tokenizer& tokenizer, bool chats) {
  const bool framed = recipe.data.has_rows() && recipe.data.has_tokens() && !chats;
  return framed ? tokenizer.start() >= 0 : tokenizer.begins();
}

Tokens prompt_tokens(const Recipe& recipe, const Tokenizer& tokenizer, const std::string& text) {
  Tokens tokens = tokenizer.encode(text);
  if (begins(recipe, tokenizer, false)) tokens.insert(tokens.begin(), tokenizer.start());
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

namespace {
// the maximum number of tokens of a source if the model has no limit; attention to long sources needs much memory
constexpr std::int64_t longest_source = 1000;

std::string packed(const std::vector<Hypothesis>& hypotheses) {
  ranks::PackedBytes bytes;
  for (const Hypothesis& each : hypotheses) {
    bytes.add(each.tokens.size());
    for (const std::int32_t token : each.tokens) bytes.add(token);
    bytes.add(each.log_probability);
    bytes.add(each.score);
    bytes.add(each.finished);
    bytes.add(each.end);
  }
  return bytes.bytes();
}

std::vector<Hypothesis> unpacked(const std::string& text) {
  ranks::PackedBytes bytes(text);
  std::vector<Hypothesis> hypotheses;
  while (!bytes.at_end()) {
    Hypothesis& each = hypotheses.emplace_back();
    each.tokens.resize(bytes.take<std::size_t>());
    for (std::int32_t& token : each.tokens) token = bytes.take<std::int32_t>();
    each.log_probability = bytes.take<double>();
    each.score = bytes.take<double>();
    each.finished = bytes.take<bool>();
    each.end = bytes.take<std::int32_t>();
  }
  return hypotheses;
}

/// Returns the results of `search` for all sources. `search` sorts the sources by length and forms batches. Each rank
/// searches some of these batches.
template <class Search>
std::vector<std::vector<Hypothesis>> search_together(const std::vector<Tokens>& sources, std::int64_t batch_size,
                                                     ranks::RankGroup& group, const Search& search) {
  if (group.size() == 1) return search(sources);
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  const ranks::SharedWork work(group, sources.size(), static_cast<std::size_t>(batch_size));
  std::vector<Tokens> here;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (work.is_here(i)) here.push_back(sources[order[i]]);
  std::vector<std::string> bytes;
  for (const std::vector<Hypothesis>& each : search(here)) bytes.push_back(packed(each));
  const std::vector<std::string> all = work.gather(bytes);
  std::vector<std::vector<Hypothesis>> found(sources.size());
  for (std::size_t i = 0; i < order.size(); ++i) found[order[i]] = unpacked(all[i]);
  return found;
}
}  // namespace

std::vector<Translation> translate(Searcher& searcher, const Tokenizers& tokenizers,
                                   const std::vector<std::string>& lines, SearchOptions options, std::int64_t positions,
                                   ranks::RankGroup& group) {
  options.start = tokenizers.target->start();
  options.pad = tokenizers.source->pad();
  if (positions > 0) options.max_length = std::min(options.max_length, positions);
  const std::size_t frame = source_of(*tokenizers.source, "").size();  // number of tokens of an empty line
  const auto limit = static_cast<std::size_t>(positions > 0 ? positions : longest_source);
  std::vector<Translation> translations(lines.size());
  std::vector<Tokens> sources;
  std::vector<std::size_t> places;  // the line index of each source
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      Tokens source = source_of(*tokenizers.source, lines[i]);
      if (source.size() > limit)
        throw Error("has " + std::to_string(source.size()) +
                    " tokens, start and end included; the model reads at most " + std::to_string(limit));
      if (source.size() == frame) continue;
      sources.push_back(std::move(source));
      places.push_back(i);
    } catch (const Error& error) {
      translations[i].problem = error.what();
    }
  }
  const auto found = search_together(sources, options.batch_size, group,
                                     [&](const std::vector<Tokens>& here) { return searcher.search(here, options); });
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const Hypothesis& each : found[i]) {
      Tokens produced = each.tokens;
      if (each.finished) produced.push_back(each.end);
      translations[places[i]].candidates.push_back(
          {tokenizers.target->decode(each.tokens), std::move(produced), each.score, each.log_probability});
    }
  return translations;
}

}  // namespace xtape::train
