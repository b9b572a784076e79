#include "run_data.hpp"

#include <filesystem>

#include "durable.hpp"
#include "files.hpp"

namespace xtape::train {

namespace {
PairTexts read_sentences(const std::string& folder, const std::string& source, const std::string& target) {
  const auto path = [&](const std::string& name) { return (std::filesystem::path(folder) / name).string(); };
  PairTexts sentences = {read_lines(path(source)), read_lines(path(target))};
  if (sentences.source.size() != sentences.target.size())
    throw Error(path(source) + " has " + std::to_string(sentences.source.size()) + " lines and " + path(target) + " " +
                std::to_string(sentences.target.size()) + ": line i of one must translate line i of the other");
  return sentences;
}
}  // namespace

Texts::Texts(const Recipe& recipe) : recipe_(recipe) {
  const Recipe::Data& data = recipe.data;
  if (data.kind == "text") split_ = split_text(read_text(data.text), data.split);
  if (data.kind == "documents") split_documents_of(data);
  if (data.kind == "adder") split_.training = AdderBatches::text(data.adder);
  if (data.kind == "parallel") {
    training_ = read_sentences(data.folder, data.source, data.target);
    validation_ = read_sentences(data.folder, data.validation_source, data.validation_target);
  }
  if (data.kind == "number_words" || data.kind == "dates") {
    SplitPairs texts = data.kind == "dates" ? dates(data.dates) : number_words(data.numbers);
    training_ = std::move(texts.training);
    validation_ = std::move(texts.held_out);
  }
}

/// The first documents train, the rest validate.
void Texts::split_documents_of(const Recipe::Data& data) {
  const std::vector<std::string> all = split_documents(read_text(data.text), data.separator);
  if (!(data.split > 0 && data.split <= 1))
    throw Error("the training part is a fraction in (0, 1] of the texts, not " + std::to_string(data.split));
  const auto count = static_cast<std::ptrdiff_t>(static_cast<double>(all.size()) * data.split);
  training_.target.assign(all.begin(), all.begin() + count);
  validation_.target.assign(all.begin() + count, all.end());
}

std::vector<std::string> Texts::lines_for(bool source) const {
  if (recipe_.data.kind == "documents") return training_.target;
  if (!recipe_.data.has_pairs()) return {split_.training};
  std::vector<std::string> lines = source || recipe_.tokenizer.joint ? training_.source : training_.target;
  if (recipe_.tokenizer.joint) lines.insert(lines.end(), training_.target.begin(), training_.target.end());
  return lines;
}

std::shared_ptr<const Tokenizer> Texts::make_tokenizer(const std::vector<std::string>& lines) const {
  const TokenizerSettings& settings = recipe_.tokenizer;
  if (settings.kind == "saved") return load_tokenizer(settings.path);
  if (settings.kind == "sentencepiece") return std::make_shared<SentencePieceTokenizer>(lines, settings.pieces);
  if (settings.kind == "gpt2") return std::make_shared<Gpt2Tokenizer>(settings.vocab, settings.merges, settings.gpt2);
  if (settings.kind == "words")
    return std::make_shared<WordTokenizer>(
        settings.vocabulary.empty() ? WordTokenizer(lines, settings.words)
                                    : WordTokenizer::with_vocabulary(read_lines(settings.vocabulary), settings.words));
  return std::make_shared<CharacterTokenizer>(lines, settings.unknown, recipe_.data.has_texts());
}

Tokenizers Texts::make_tokenizers() const {
  const TokenizerSettings& settings = recipe_.tokenizer;
  if (recipe_.data.has_pairs() && settings.kind == "saved" && is_folder(settings.path))
    return {load_tokenizer(settings.path), load_target_tokenizer(settings.path)};
  Tokenizers made;
  made.target = make_tokenizer(lines_for(false));
  const bool one = recipe_.tokenizer.joint || !recipe_.data.has_pairs();
  made.source = one ? made.target : make_tokenizer(lines_for(true));
  return made;
}

std::unique_ptr<Batches> Texts::batches(const Tokenizers& tokenizers) const {
  const Recipe::Data& data = recipe_.data;
  if (data.kind == "adder") {
    AdderOptions options = data.adder;
    options.rows = recipe_.batch_size;
    options.seed = recipe_.trainer.seed;
    return std::make_unique<AdderBatches>(*tokenizers.target, options);
  }
  if (data.kind == "text") {
    const TextBatchesOptions options = {recipe_.batch_size, data.block_size, recipe_.trainer.seed, data.consecutive};
    return std::make_unique<TextBatches>(tokenizers.target->encode(split_.training),
                                         tokenizers.target->encode(split_.validation), options);
  }
  const Tokenizer& source = *tokenizers.source;
  const Tokenizer& target = *tokenizers.target;
  if (data.kind == "documents")
    return std::make_unique<PairBatches>(documents_of(training_.target, target, data.max_length),
                                         documents_of(validation_.target, target), pair_options(recipe_, tokenizers));
  return std::make_unique<PairBatches>(pairs_of(training_, source, target, data.max_length),
                                       pairs_of(validation_, source, target), pair_options(recipe_, tokenizers));
}

PairBatchesOptions pair_options(const Recipe& recipe, const Tokenizers& tokenizers) {
  PairBatchesOptions options;
  options.sources = recipe.data.has_pairs();
  if (recipe.batch_size > 0) options.rows = recipe.batch_size;
  options.tokens = recipe.batch_tokens;
  options.bucket = recipe.bucket;
  options.source_pad = tokenizers.source->pad();
  options.target_pad = tokenizers.target->pad();
  options.seed = recipe.trainer.seed;
  return options;
}

void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory) {
  if (tokenizers.source == tokenizers.target) {
    save_tokenizer(*tokenizers.target, directory + "/tokenizer.json");
    return;
  }
  save_tokenizer(*tokenizers.source, directory + "/source_tokenizer.json");
  save_tokenizer(*tokenizers.target, directory + "/target_tokenizer.json");
}

Tokenizers load_tokenizers(const std::string& directory) {
  const auto load = [&](const std::string& name) {
    return std::shared_ptr<const Tokenizer>(load_tokenizer(directory + "/" + name));
  };
  if (!path_exists(directory + "/source_tokenizer.json")) {
    const auto one = load("tokenizer.json");
    return {one, one};
  }
  return {load("source_tokenizer.json"), load("target_tokenizer.json")};
}

}  // namespace xtape::train
