// Byte-level byte-pair encoding, read from a tokenizer.json or from GPT-2's two files.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "byte_pairs.hpp"
#include "crc32.hpp"
#include "held.hpp"
#include "json_text.hpp"
#include "published.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
/// Whether an entry is missing, null, false or "".
bool is_unset(const JsonNode& object, const char* key) {
  if (!object.has(key)) return true;
  const Json& value = object.at(key).json();
  return value.is_null() || value == false || value == "";
}

std::int32_t read_token(const JsonNode& node) {
  return static_cast<std::int32_t>(node.integer(0, most_pieces - 1));
}

/// The elements of a "Sequence", or the node itself if it is not one.
std::vector<JsonNode> parts_of(const JsonNode& node, const char* list) {
  return node.at("type").text() == "Sequence" ? node.at(list).elements() : std::vector<JsonNode>{node};
}

/// The word pattern of "pre_tokenizer", of which exactly one is supported.
WordPattern read_pattern(const JsonNode& json) {
  if (is_unset(json, "pre_tokenizer")) json.fail("there is no \"pre_tokenizer\" to split text into words");
  const JsonNode all = json.at("pre_tokenizer");
  std::optional<WordPattern> pattern;
  bool bytes = false;
  const auto add = [&](const JsonNode& part, const auto& make) {
    if (pattern) part.fail("a second word pattern is not supported");
    pattern = make();
  };
  for (const JsonNode& part : parts_of(all, "pretokenizers")) {
    const std::string& type = part.at("type").text();
    if (type == "Split") {
      if (part.at("behavior").text() != "Isolated" || (part.has("invert") && part.at("invert").flag()))
        part.fail("only the behavior \"Isolated\", without \"invert\", is supported");
      const JsonNode regex = part.at("pattern").at("Regex");
      add(part, [&] {
        try {
          return WordPattern(regex.text());
        } catch (const Error& error) {
          regex.fail(error.what());
        }
      });
    } else if (type == "ByteLevel") {
      bytes = true;
      if (part.has("add_prefix_space") && part.at("add_prefix_space").flag())
        part.fail("a space before the text is not supported: \"add_prefix_space\" must be false");
      if (!part.has("use_regex") || part.at("use_regex").flag()) add(part, [] { return WordPattern::gpt2(); });
    } else {
      part.fail("pre-tokenizer \"" + type + "\" is not supported; supported: \"Split\", \"ByteLevel\"");
    }
  }
  if (!bytes) all.fail("there is no \"ByteLevel\" pre-tokenizer; only byte-level BPE is supported");
  if (!pattern) all.fail("there is no pattern that splits text into words");
  return *pattern;
}

/// The pieces by token; "" for an unused token, of which a vocabulary that is `dense` has none.
std::vector<std::string> read_pieces(const JsonNode& vocabulary, bool dense) {
  const auto entries = vocabulary.entries();
  std::vector<std::string> pieces(dense ? entries.size() : 0);
  std::vector<bool> given(pieces.size());
  for (const auto& entry : entries) {
    const JsonNode& node = entry.second;
    const auto said = [&] { return "the token of " + Json(entry.first).dump() + " is " + node.json().dump(); };
    if (dense && (!node.json().is_number_unsigned() || node.json().get<std::uint64_t>() >= entries.size()))
      node.fail(said() + "; the tokens of " + std::to_string(entries.size()) + " pieces must be the numbers 0 to " +
                std::to_string(entries.size() - 1));
    const auto token = static_cast<std::size_t>(read_token(node));
    if (token >= pieces.size()) {
      pieces.resize(token + 1);
      given.resize(token + 1);
    }
    if (given[token]) node.fail(said() + ", but " + Json(pieces[token]).dump() + " has the same token");
    given[token] = true;
    pieces[token] = entry.first;
  }
  return pieces;
}

/// `read`, with the file's path before its errors.
template <class Read>
void of_file(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(path + ": " + error.what());
  }
}
}  // namespace

struct BytePairTokenizer::Data {
  Json json;                         // that it is saved as, without the tokens of a folder
  std::vector<TokenizerFile> files;  // a name that begins with a dot follows the stem
  std::unique_ptr<BytePairs> pairs;
  std::unordered_map<std::string, std::int32_t> added;
  std::unordered_map<std::int32_t, std::string> added_pieces;
  std::set<std::int32_t> special;
  std::string first;  // the special token that a text begins with; "" if there is none
  std::int32_t end = -1;
  std::int64_t size = 0;

  void read_model(const JsonNode& json) {
    if (!is_unset(json, "normalizer"))
      json.at("normalizer").fail("normalising texts is not supported: \"normalizer\" must be null");
    const JsonNode model = json.at("model");
    // Older files do not have the type.
    const std::string type = model.has("type") ? model.at("type").text() : "BPE";
    const bool by_bytes = type == "BPE" && is_unset(model, "byte_fallback");
    if (!by_bytes)
      model.fail("only byte-level BPE is supported in a tokenizer.json, not " +
                 (type == "BPE" ? "BPE with byte_fallback" : type) +
                 "; if there is a tokenizer.model or spiece.model, put it into the same folder");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (!is_unset(model, key)) model.at(key).fail("\"" + std::string(key) + "\" is not supported: it must be null");
    WordPattern pattern = read_pattern(json);
    try {
      pairs = std::make_unique<BytePairs>(read_pieces(model.at("vocab"), false), std::move(pattern));
    } catch (const FileError&) {
      throw;
    } catch (const Error& error) {
      model.at("vocab").fail(error.what());
    }
    for (const JsonNode& merge : model.at("merges").elements()) read_merge(merge);
    if (!is_unset(model, "ignore_merges")) pairs->take_whole_words();
    size = static_cast<std::int64_t>(pairs->pieces().size());
  }

  void read_merge(const JsonNode& node) const {
    std::string left, right;
    if (node.is_array()) {
      const std::vector<JsonNode> sides = node.elements();
      if (sides.size() != 2) node.fail("a merge must be a list of two pieces");
      left = sides[0].text();
      right = sides[1].text();
    } else {
      const std::size_t space = std::min(node.text().find(' '), node.text().size());
      left = node.text().substr(0, space);
      right = node.text().substr(std::min(space + 1, node.text().size()));
    }
    try {
      pairs->add_merge(left, right);
    } catch (const Error& error) {
      node.fail(error.what());
    }
  }

  void read_added(const JsonNode& json) {
    if (is_unset(json, "added_tokens")) return;
    for (const JsonNode& each : json.at("added_tokens").elements()) {
      const std::int32_t token = read_token(each.at("id"));
      const std::string& content = each.at("content").text();
      if (content.empty()) each.at("content").fail("the text of an added token must not be empty");
      added.emplace(content, token);
      added_pieces.emplace(token, content);
      if (each.has("special") && each.at("special").flag())
        special.insert(token);
      else
        pairs->find_in_text(content, token);
      size = std::max(size, std::int64_t{token} + 1);
    }
  }

  /// Reads the special token that a text begins with from the template for single texts. The other special tokens of
  /// the template are ignored: they do not apply to a text that is to be continued.
  void read_template(const JsonNode& json) {
    if (is_unset(json, "post_processor")) return;
    for (const JsonNode& part : parts_of(json.at("post_processor"), "processors")) {
      if (part.at("type").text() != "TemplateProcessing") continue;
      const std::vector<JsonNode> single = part.at("single").elements();
      if (!single.empty() && single[0].has("SpecialToken")) {
        first = single[0].at("SpecialToken").at("id").text();
        if (added.count(first) == 0) single[0].fail("this token is not among \"added_tokens\"");
      }
    }
  }

  static std::shared_ptr<const Data> published(const std::string& text, const std::string& name) {
    const JsonNode node(text, name, JsonErrors::file);
    const auto data = std::make_shared<Data>();
    data->read_model(node);
    data->read_added(node);
    data->read_template(node);
    data->json = {{"xtape", 1},
                  {"kind", "byte_pairs"},
                  {"published", nullptr},
                  {"file", {{"bytes", text.size()}, {"crc32", crc32_of(text)}}}};
    data->files = {{".published.json", text}};
    return data;
  }

  void read_merges(const std::string& text) const {
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t newline = std::min(text.find('\n', begin), text.size());
      std::string line = text.substr(begin, newline - begin);
      begin = newline + 1;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (++number == 1 && line.starts_with("#version")) continue;
      try {
        const std::size_t space = line.find(' ');
        if (space == std::string::npos || space == 0 || space + 1 == line.size() || line.rfind(' ') != space)
          throw Error("a merge must be two pieces separated by a space, got \"" + line + "\"");
        pairs->add_merge(line.substr(0, space), line.substr(space + 1));
      } catch (const Error& error) {
        throw Error("line " + std::to_string(number) + ": " + error.what());
      }
    }
  }

  static std::shared_ptr<const Data> gpt2(const std::string& vocabulary, const std::string& merges,
                                          const Gpt2Options& options) {
    constexpr const char* end_of_text = "<|endoftext|>";
    const auto data = std::make_shared<Data>();
    data->files = {{"vocab.json", read_text(vocabulary)}, {"merges.txt", read_text(merges)}};
    const JsonNode node(data->files[0].bytes, vocabulary, JsonErrors::file);
    if (!node.is_object() || node.json().empty())
      node.fail("a vocabulary must be an object of pieces and their tokens: {\"!\": 0, \"\\\"\": 1, …}");
    of_file(vocabulary, [&] { data->pairs = std::make_unique<BytePairs>(read_pieces(node, true)); });
    of_file(merges, [&] { data->read_merges(data->files[1].bytes); });
    data->size = static_cast<std::int64_t>(data->pairs->pieces().size());
    data->end = data->pairs->token_of(end_of_text);
    data->special.insert(data->end);
    if (options.end_in_text && data->end < 0)
      throw FileError(vocabulary + ": there is no piece \"" + end_of_text + "\", which end_in_text needs");
    if (options.end_in_text) data->pairs->find_in_text(end_of_text, data->end);
    // The pieces themselves are in the files; the checksums detect files that are different or incomplete.
    data->json = {{"xtape", 1},
                  {"kind", "gpt2"},
                  {"pieces", data->size},
                  {"end_in_text", options.end_in_text},
                  {"vocab_crc32", crc32_of(data->files[0].bytes)},
                  {"merges_crc32", crc32_of(data->files[1].bytes)}};
    return data;
  }
};

BytePairTokenizer::BytePairTokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {
  published_.end = data_->end;
}

BytePairTokenizer::BytePairTokenizer(const std::string& json, const std::string& name)
    : BytePairTokenizer(Data::published(json, name)) {}

Gpt2Tokenizer::Gpt2Tokenizer(const std::string& vocabulary, const std::string& merges, const Gpt2Options& options)
    : BytePairTokenizer(Data::gpt2(vocabulary, merges, options)) {}

BytePairTokenizer BytePairTokenizer::with_tokens(const PublishedTokens& published) const {
  BytePairTokenizer tokenizer = *this;
  tokenizer.published_ = published;
  return tokenizer;
}

std::int64_t BytePairTokenizer::size() const {
  return std::max(held(data_).size, published_.size);
}

Tokens BytePairTokenizer::encode(const std::string& text) const {
  return held(data_).pairs->encode(text);
}

std::string BytePairTokenizer::decode(const Tokens& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    check_token(token);
    if (held(data_).special.count(token) != 0) continue;
    if (const auto found = held(data_).added_pieces.find(token); found != held(data_).added_pieces.end())
      text += found->second;
    else if (static_cast<std::size_t>(token) < held(data_).pairs->pieces().size())
      text += held(data_).pairs->bytes_of(token);
  }
  return text;
}

std::vector<std::string> BytePairTokenizer::pieces(const Tokens& tokens) const {
  const std::vector<std::string>& known = held(data_).pairs->pieces();
  std::vector<std::string> pieces;
  for (const std::int32_t token : tokens) {
    check_token(token);
    const auto added = held(data_).added_pieces.find(token);
    const bool known_one =
        static_cast<std::size_t>(token) < known.size() && !known[token].empty();
    pieces.push_back(added != held(data_).added_pieces.end() ? added->second
                     : known_one                             ? known[token]
                                                             : unnamed_piece(token));
  }
  return pieces;
}

std::int32_t BytePairTokenizer::token_of(const std::string& piece) const {
  const auto found = held(data_).added.find(piece);
  return found != held(data_).added.end() ? found->second : held(data_).pairs->token_of(piece);
}

std::string BytePairTokenizer::first_special() const {
  return held(data_).first;
}

std::string BytePairTokenizer::to_json() const {
  Json json = held(data_).json;
  if (json.contains("published")) json["published"] = json_of(published_);
  return json.dump(2) + "\n";
}

std::vector<TokenizerFile> BytePairTokenizer::files(const std::string& stem) const {
  std::vector<TokenizerFile> files = held(data_).files;
  for (TokenizerFile& file : files)
    if (file.name[0] == '.') file.name.insert(0, stem);
  return files;
}

}  // namespace xtape
