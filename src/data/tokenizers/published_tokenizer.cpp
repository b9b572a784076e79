// Tokenizers in the format of Hugging Face's tokenizers, and GPT-2's tokenizer from its two files.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "data/arrays/npz.hpp"
#include "data/tables/fields.hpp"
#include "data/texts/texts.hpp"
#include "data/tokenizers/pipeline.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/word_models.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
void read_merges(const std::string& text, BytePairs& pairs) {
  std::size_t number = 0;
  for_each_line(text, [&](const std::string& line) {
    if (++number == 1 && line.starts_with("#version")) return;
    try {
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || space == 0 || space + 1 == line.size() || line.rfind(' ') != space)
        throw Error("a merge must be two pieces separated by a space, got \"" + line + "\"");
      pairs.add_merge(line.substr(0, space), line.substr(space + 1));
    } catch (const Error& error) {
      throw Error("line " + std::to_string(number) + ": " + error.what());
    }
  });
}
}  // namespace

struct PublishedTokenizer::Data {
  Json json;                         // the JSON of the saved tokenizer; to_json() sets its entry "published"
  std::vector<TokenizerFile> files;  // a name that begins with a dot is appended to the stem
  Pipeline pipeline;
  std::int32_t end = -1;

  static std::shared_ptr<const Data> published(const std::string& text, const std::string& name) {
    return std::shared_ptr<const Data>(new Data{{{"xtape", 1},
                                                 {"kind", "published"},
                                                 {"published", nullptr},
                                                 {"file", {{"bytes", text.size()}, {"crc32", crc32_of(text)}}}},
                                                {{".published.json", text}},
                                                Pipeline(JsonNode(text, name, JsonErrors::file)),
                                                -1});
  }

  static std::shared_ptr<const Data> gpt2(const std::string& vocabulary, const std::string& merges,
                                          const Gpt2Options& options) {
    constexpr const char* end_of_text = "<|endoftext|>";
    std::vector<TokenizerFile> files = {{"vocab.json", read_text(vocabulary)}, {"merges.txt", read_text(merges)}};
    const JsonNode node(files[0].bytes, vocabulary, JsonErrors::file);
    if (!node.is_object() || node.json().empty())
      node.fail("a vocabulary must be an object of pieces and their tokens: {\"!\": 0, \"\\\"\": 1, …}");
    std::unique_ptr<BytePairs> pairs;
    BytePairOptions by_bytes;
    by_bytes.by_bytes = true;
    of_file(vocabulary, [&] { pairs = std::make_unique<BytePairs>(Vocabulary(read_pieces(node, true)), by_bytes); });
    of_file(merges, [&] { read_merges(files[1].bytes, *pairs); });
    const std::size_t size = pairs->vocabulary().pieces().size();
    const std::int32_t end = pairs->vocabulary().token_of(end_of_text);
    if (options.end_in_text && end < 0)
      throw FileError(vocabulary + ": there is no piece \"" + end_of_text + "\", which end_in_text needs");
    // The files contain the pieces. The checksums detect files that are different or incomplete.
    const Json json = {{"xtape", 1},
                       {"kind", "gpt2"},
                       {"pieces", size},
                       {"end_in_text", options.end_in_text},
                       {"prefix_space", options.prefix_space},
                       {"vocab_crc32", crc32_of(files[0].bytes)},
                       {"merges_crc32", crc32_of(files[1].bytes)}};
    const Pipeline pipeline(std::move(pairs), options.prefix_space);
    std::vector<AddedToken> added;
    if (end >= 0)
      added.push_back({.content = end_of_text, .token = end, .special = true, .found = options.end_in_text});
    return std::shared_ptr<const Data>(new Data{json, std::move(files), pipeline.with(added), end});
  }
};

PublishedTokenizer::PublishedTokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {
  published_.end = data_->end;
}

PublishedTokenizer::PublishedTokenizer(const std::string& json, const std::string& name)
    : PublishedTokenizer(Data::published(json, name)) {}

Gpt2Tokenizer::Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options)
    : PublishedTokenizer(Data::gpt2(vocabulary, merges, options)) {}

PublishedTokenizer PublishedTokenizer::with_tokens(const PublishedTokens& published) const {
  PublishedTokenizer tokenizer = *this;
  tokenizer.published_ = published;
  tokenizer.is_published_ = true;
  const Data& data = held(data_);
  if (!published.added.empty())
    tokenizer.data_.reset(new Data{data.json, data.files, data.pipeline.with(published.added), data.end});
  return tokenizer;
}

std::int64_t PublishedTokenizer::size() const {
  return std::max(held(data_).pipeline.size(), published_.size);
}

Tokens PublishedTokenizer::encode(const std::string& text) const {
  return held(data_).pipeline.encode(text);
}

std::string PublishedTokenizer::decode(const Tokens& tokens) const {
  for (const std::int32_t token : tokens) check_token(token);
  return held(data_).pipeline.decode(tokens);
}

std::vector<std::string> PublishedTokenizer::pieces(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  for (const std::int32_t token : tokens) {
    check_token(token);
    const std::string& piece = held(data_).pipeline.piece(token);
    pieces.push_back(piece.empty() ? unnamed_piece(token) : piece);
  }
  return pieces;
}

TypedTokens PublishedTokenizer::in_template(const std::vector<std::string>& texts) const {
  if (texts.empty() || texts.size() > 2)
    throw Error("a template takes one text or two, not " + std::to_string(texts.size()));
  const Templates& templates = held(data_).pipeline.templates();
  TypedTokens result;
  for (const TemplatePart& part : texts.size() == 1 ? templates.single : templates.pair) {
    const Tokens text = part.tokens.empty() ? encode(texts.at(part.second ? 1 : 0)) : part.tokens;
    result.tokens.insert(result.tokens.end(), text.begin(), text.end());
    result.types.resize(result.tokens.size(), part.type);
  }
  return result;
}

std::int32_t PublishedTokenizer::unknown() const {
  return data_ ? data_->pipeline.unknown() : -1;
}
std::int32_t PublishedTokenizer::token_of(const std::string& piece) const {
  return held(data_).pipeline.token_of(piece);
}
std::int32_t PublishedTokenizer::template_start() const {
  return held(data_).pipeline.templates().first();
}
std::int32_t PublishedTokenizer::template_end() const {
  return held(data_).pipeline.templates().last();
}

std::string PublishedTokenizer::to_json() const {
  Json json = held(data_).json;
  if (is_published_ || json.contains("published")) json["published"] = json_of(published_);
  return json.dump(2) + "\n";
}

std::vector<TokenizerFile> PublishedTokenizer::files(const std::string& stem) const {
  std::vector<TokenizerFile> files = held(data_).files;
  for (TokenizerFile& file : files)
    if (file.name[0] == '.') file.name.insert(0, stem);
  return files;
}

}  // namespace xtape
