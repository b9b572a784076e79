#include "base/messages/wording.hpp"
#include "data/tokenizers/normalizers.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {
using Pieces = std::vector<std::string>;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size())
    result.append(text, at, found - at) += to;
  text = result.append(text, at);
}

void fuse(Pieces& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  pieces = {text};
}

/// Converts the byte pieces "<0x0A>" … to text. Bytes that are not UTF-8 become one U+FFFD each.
void with_bytes(Pieces& pieces) {
  Pieces result;
  std::string bytes;
  const auto flush = [&] {
    bool valid = true;
    for (std::size_t at = 0, length; valid && at < bytes.size(); at += length)
      valid = (length = character_length(bytes, at)) > 0;
    if (valid && !bytes.empty()) result.push_back(bytes);
    if (!valid) result.insert(result.end(), bytes.size(), std::string(replacement_text));
    bytes.clear();
  };
  for (const std::string& piece : pieces) {
    const bool is_byte = piece.size() == 6 && piece.starts_with("<0x") && piece[5] == '>' &&
                         piece.find_first_not_of("0123456789ABCDEFabcdef", 3) == 5;
    if (is_byte) {
      bytes += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
      continue;
    }
    flush();
    result.push_back(piece);
  }
  flush();
  pieces = std::move(result);
}

Decoder metaspace(const JsonNode& node) {
  return [space = space_of(node), drops = prepend_scheme(node) != "never"](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], space, i == 0 && drops ? "" : " ");
  };
}

Decoder word_pieces(const JsonNode& node) {
  const std::string prefix = text_of(node, "prefix", "##");
  const bool cleanup = flag_of(node, "cleanup", true);
  return [=](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      std::string& piece = pieces[i];
      if (i > 0 && piece.starts_with(prefix))
        piece.erase(0, prefix.size());
      else if (i > 0)
        piece.insert(0, " ");
      if (!cleanup) continue;
      for (const auto& [from, to] : {std::pair{" .", "."},
                                     {" ?", "?"},
                                     {" !", "!"},
                                     {" ,", ","},
                                     {" ' ", "'"},
                                     {" n't", "n't"},
                                     {" 'm", "'m"},
                                     {" do not", " don't"},
                                     {" 's", "'s"},
                                     {" 've", "'ve"},
                                     {" 're", "'re"}})
        replace_all(piece, from, to);
    }
  };
}

/// Removes `content` up to `start` times from the beginning of a piece and up to `stop` times from its end.
Decoder strip(const JsonNode& node) {
  const std::string content = node.at("content").text();
  if (content.empty()) node.at("content").fail("the character to be removed must not be empty");
  const std::int64_t start = node.at("start").integer(0, 1 << 20), stop = node.at("stop").integer(0, 1 << 20);
  return [=](Pieces& pieces) {
    for (std::string& piece : pieces) {
      for (std::int64_t i = 0; i < start && piece.starts_with(content); ++i) piece.erase(0, content.size());
      for (std::int64_t i = 0; i < stop && piece.ends_with(content); ++i) piece.resize(piece.size() - content.size());
    }
  };
}

Decoder decoder_of(const JsonNode& node) {
  const std::string& type = node.at("type").text();
  if (type == "ByteLevel") return byte_decoder();
  if (type == "Metaspace") return metaspace(node);
  if (type == "WordPiece") return word_pieces(node);
  if (type == "ByteFallback") return with_bytes;
  if (type == "Fuse") return fuse;
  if (type == "Strip") return strip(node);
  if (type == "Replace")
    return [pattern = read_pattern(node.at("pattern")), with = node.at("content").text()](Pieces& pieces) {
      for (std::string& piece : pieces) piece = pattern.replaced(piece, with);
    };
  if (type == "BPEDecoder") {
    const std::string suffix = text_of(node, "suffix", "</w>");
    if (suffix.empty()) node.at("suffix").fail("\"suffix\" must not be empty");
    return [=](Pieces& pieces) {
      for (std::size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], suffix, i + 1 == pieces.size() ? "" : " ");
    };
  }
  refuse_type(node, "the decoder",
              "BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece");
}
}  // namespace

Decoder byte_decoder() {
  return [](Pieces& pieces) {
    std::string text;
    for (const std::string& piece : pieces) text += bytes_of_symbols(piece);
    pieces = {text};
  };
}

std::vector<Decoder> read_decoders(const JsonNode& node) {
  std::vector<Decoder> all;
  for (const JsonNode& part : parts_of(node, "decoders")) all.push_back(decoder_of(part));
  return all;
}

namespace {
using TokenOf = std::function<std::int32_t(const std::string&)>;

std::vector<TemplatePart> read_template(const JsonNode& node, const JsonNode& all, const TokenOf& token_of) {
  std::vector<TemplatePart> parts;
  for (const JsonNode& each : node.elements()) {
    const bool special = each.has("SpecialToken");
    const JsonNode part = each.at(special ? "SpecialToken" : "Sequence");
    TemplatePart made{{}, false, static_cast<std::int32_t>(part.at("type_id").integer(0, most_pieces))};
    const std::string& id = part.at("id").text();
    if (!special) {
      if (id != "A" && id != "B") part.at("id").fail("a text must be \"A\" or \"B\", not \"" + id + "\"");
      made.second = id == "B";
    } else if (all.has("special_tokens") && all.at("special_tokens").has(id)) {
      for (const JsonNode& token : all.at("special_tokens").at(id).at("ids").elements())
        made.tokens.push_back(read_token(token));
    } else {
      made.tokens = {token_of(id)};
    }
    if (special && (made.tokens.empty() || token_of(id) < 0)) part.fail("this token is not among \"added_tokens\"");
    parts.push_back(std::move(made));
  }
  if (parts.empty()) node.fail("a template must not be empty");
  return parts;
}

/// Reads the token of an entry such as "sep", which consists of a text and its token.
Tokens named(const JsonNode& node) {
  const std::vector<JsonNode> both = node.elements();
  if (both.size() != 2) node.fail("this must be a text and its token");
  return {read_token(both[1])};
}
}  // namespace

Templates read_templates(const JsonNode& node, const TokenOf& token_of) {
  Templates templates;
  bool read = false;
  for (const JsonNode& part : parts_of(node, "processors")) {
    const std::string& type = part.at("type").text();
    if (type == "ByteLevel") continue;  // affects only the positions of tokens in the text
    if (read) part.fail("a second template is not supported");
    read = true;
    if (type == "TemplateProcessing") {
      templates.single = read_template(part.at("single"), part, token_of);
      if (!is_unset(part, "pair")) templates.pair = read_template(part.at("pair"), part, token_of);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      const bool bert = type == "BertProcessing";
      const Tokens start = named(part.at("cls")), end = named(part.at("sep"));
      templates.single = {{start, false, 0}, {{}, false, 0}, {end, false, 0}};
      templates.pair = templates.single;
      if (!bert) templates.pair.push_back({end, false, 0});
      const std::int32_t second = bert ? 1 : 0;
      templates.pair.push_back({{}, true, second});
      templates.pair.push_back({end, false, second});
    } else {
      refuse_type(part, "the post-processor",
                  "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing");
    }
  }
  return templates;
}

}  // namespace xtape
