// The tokens of the splits of a long text, which a run keeps in its folder.
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes/encodings.hpp"
#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/system.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
/// What the file NAME.json beside NAME.npy says: of which text and tokenizer the tokens are.
struct CacheLabel {
  std::string text, tokenizer;
  std::uint64_t checksum = 0;  // of the text

  static std::optional<CacheLabel> read(const std::string& cache) try {
    if (cache.empty() || !path_exists(cache + ".json") || !path_exists(cache + ".npy")) return std::nullopt;
    const Json json = Json::parse(read_file(cache + ".json"));
    return CacheLabel{json.at("text"), json.at("tokenizer"), json.at("checksum")};
  } catch (const std::exception&) {  // a damaged cache is made again
    return std::nullopt;
  }
  void write(const std::string& cache) const {
    const Json json = {{"text", text}, {"tokenizer", tokenizer}, {"checksum", checksum}};
    write_file(cache + ".json", json.dump(2) + "\n");
  }
};

std::string tokenizer_digest(const Tokenizer& tokenizer) {
  std::string all = tokenizer.to_json();
  for (const TokenizerFile& file : tokenizer.files("tokenizer")) all += file.name + file.bytes;
  return digest_of({all});
}

bool is_writable(const std::string& folder) {
  return xtape::is_writable(path_exists(folder) ? folder : folder_of(folder));
}

/// Throws Error if a token of the split's files is not in the vocabulary.
void check_vocabulary(const DataSplit& split, const Tokenizer& tokenizer) {
  const std::string files = joined(split.parts, [](const DataPart& part) { return part.files[0]; });
  const TokenFacts& facts = split.facts;
  if (facts.least >= 0 && facts.most < tokenizer.size()) return;
  const std::int64_t wrong = facts.least < 0 ? facts.least : facts.most;
  throw Error(files + ": token " + std::to_string(wrong) + " at place " + std::to_string(facts.place) +
              " is not in the tokenizer's vocabulary of " + std::to_string(tokenizer.size()) +
              ": the tokens are those of another tokenizer, or of another type");
}
}  // namespace

void recall_checksum(DataSplit& split) {
  const auto label = CacheLabel::read(split.cache);
  if (label && label->text == split.text.identity()) split.text.set_checksum(label->checksum);
}

std::shared_ptr<const TokenSequence> tokens_of(const DataSplit& split, const Tokenizer& tokenizer) {
  if (split.tokens) {
    check_vocabulary(split, tokenizer);
    return split.tokens;
  }
  CacheLabel wanted{split.text.identity(), tokenizer_digest(tokenizer)};
  const auto label = CacheLabel::read(split.cache);
  if (label && !wanted.text.empty() && label->text == wanted.text && label->tokenizer == wanted.tokenizer)
    return open_tokens(split.cache + ".npy");
  const bool is_kept = !split.cache.empty() && !wanted.text.empty() && is_writable(folder_of(split.cache));
  TokenWriter writer(is_kept ? split.cache + ".npy" : "", tokenizer.size());
  encode_text(tokenizer, split.text, writer);
  if (is_kept) remove_if_possible(split.cache + ".json");  // does not describe the new tokens
  const auto tokens = writer.finish();
  if (is_kept && writer.is_in_file()) {
    wanted.checksum = split.text.checksum();
    wanted.write(split.cache);
  }
  return tokens;
}

}  // namespace xtape::train
