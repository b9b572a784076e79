/// The post-processors of a tokenizer.json: which special tokens surround a text and a pair of texts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json_text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// A part of a template: special tokens, or a text.
struct TemplatePart {
  Tokens tokens;      ///< Empty: a text.
  bool second;        ///< For a text: whether it is the second of the pair.
  std::int32_t type;  ///< The type of its tokens.
};

struct Templates {
  std::vector<TemplatePart> single = {{{}, false, 0}};
  std::vector<TemplatePart> pair = {{{}, false, 0}, {{}, true, 1}};

  /// The special token that begins a single text, and that which ends it; -1: none.
  std::int32_t first() const { return single.front().tokens.empty() ? -1 : single.front().tokens.front(); }
  std::int32_t last() const { return single.back().tokens.empty() ? -1 : single.back().tokens.back(); }
};

/// From the entry "post_processor". `token_of` gives the token of a text, or -1. Throws FileError at what is not
/// supported.
Templates read_templates(const JsonNode& node, const std::function<std::int32_t(const std::string&)>& token_of);

}  // namespace xtape
