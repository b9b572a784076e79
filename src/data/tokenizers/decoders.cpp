#include "base/messages/wording.hpp"
#include "data/tokenizers/normalizers.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/unicode.hpp"
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

}  // namespace xtape
