#include "data/tokenizers/published.hpp"

namespace xtape {

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
