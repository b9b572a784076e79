/// The post-processors of a tokenizer.json. They specify the special tokens around a text and around a pair of texts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// A part of a template: special tokens, or a text.
struct TemplatePart {
  Tokens tokens;      ///< Empty if the part is a text.
  bool second;        ///< For a text, whether it is the second text of the pair.
  std::int32_t type;  ///< The type of the tokens of this part.
};

struct Templates {
  std::vector<TemplatePart> single = {{{}, false, 0}};
  std::vector<TemplatePart> pair = {{{}, false, 0}, {{}, true, 1}};

  /// The special tokens that begin and end a single text, or -1 if there is none.
  std::int32_t first() const { return single.front().tokens.empty() ? -1 : single.front().tokens.front(); }
  std::int32_t last() const { return single.back().tokens.empty() ? -1 : single.back().tokens.back(); }
};

/// Reads the entry "post_processor". `token_of` returns the token of a text, or -1. Throws FileError at an unsupported
/// entry.
Templates read_templates(const JsonNode& node, const std::function<std::int32_t(const std::string&)>& token_of);

}  // namespace xtape
