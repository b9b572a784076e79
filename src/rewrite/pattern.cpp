#include "rewrite/pattern.hpp"

#include <algorithm>

namespace xtape {

namespace {
/// Returns the type of a sample, with float64 in place of any other float dtype, so that no literal of the pattern is
/// rounded.
ValueType exact(ValueType type) {
  if (is_floating(type.dtype)) type.dtype = Dtype::float64;
  return type;
}

/// Records the pattern of a rule on its sample. Throws Error if it cannot be a pattern.
Vars recorded_by(const FusionRule& rule, const ExpandCall& call) {
  const auto refuse = [&](const std::string& why) { throw Error("rule '" + rule.name + "': its pattern " + why); };
  Vars recorded;
  try {
    recorded = rule.pattern ? rule.pattern(call) : rule.op->expand(call);
  } catch (const Error& error) {
    refuse(std::string("cannot be recorded on its sample: ") + error.what());
  }
  if (recorded.empty() || recorded[0].empty()) refuse("gives nothing");
  if (recorded[0].node().op->is_source()) refuse("records no call for its first output");
  return recorded;
}

/// Returns the sample of an attribute as it stands in terms, or nullopt if it is the default.
std::optional<Attribute> sample_of(const Op& op, const std::pair<std::string, Attribute>& attribute) {
  for (const AttributeSpec& spec : op.attributes)
    if (spec.name == attribute.first && spec.initial == attribute.second) return std::nullopt;
  const auto* text = std::get_if<std::string>(&attribute.second);
  const bool is_equation = text != nullptr && text->find("->") != std::string::npos;
  return is_equation ? Attribute(with_letters_in_order(*text)) : attribute.second;
}
}  // namespace

RulePattern::RulePattern(const FusionRule& from) : rule(from) {
  rule.compiled = nullptr;
  Node node;
  node.op = rule.op;
  node.attributes = rule.attributes;
  for (const auto& attribute : rule.attributes.items()) samples_.push_back(sample_of(*rule.op, attribute));
  Vars vars;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    const ValueType type = exact(rule.inputs[i]);
    vars.push_back(tape.input("in" + std::to_string(i), type.shape, type.dtype));
  }
  const Vars recorded = recorded_by(rule, {{node.attributes}, *rule.op, node, tape, vars});
  const std::int32_t root_node = recorded.at(0).id().node;
  for (std::size_t k = 0; k < recorded.size(); ++k)
    if (const ValueId id = recorded[k].id(); id.node == root_node)
      outputs.emplace_back(id.output, static_cast<std::int32_t>(k));
  const TapeSegment segment{.tape = tape, .nodes = std::vector<bool>(tape.size(), true), .looks_through_all = true};
  CanonicalForm form(segment);
  for (const Var& var : vars) inputs.push_back(form.of(var.id()));
  root = form.of(recorded[0].id());
  root_op = tape.node(root_node).op;
  terms = std::move(form.terms);
  for (TermId id = 0; static_cast<std::size_t>(id) < terms.size(); ++id) {
    parts.push_back(terms[id].parts);
    if (terms[id].kind != Term::Kind::call)
      std::stable_partition(parts.back().begin(), parts.back().end(),
                            [&](const Term::Part& part) { return !input_of(part.term); });
  }
}

std::optional<std::size_t> RulePattern::input_of(TermId term) const {
  const auto found = std::find(inputs.begin(), inputs.end(), term);
  return found == inputs.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - inputs.begin()));
}

std::optional<std::size_t> RulePattern::attribute_of(const Attribute& literal) const {
  const auto found = std::find(samples_.begin(), samples_.end(), literal);
  return found == samples_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - samples_.begin()));
}

const RulePattern& pattern_of(const FusionRule& rule) {
  FusionRule::Compiled& compiled = *rule.compiled;
  std::call_once(compiled.once, [&] { compiled.pattern = std::make_shared<const RulePattern>(rule); });
  return *compiled.pattern;
}

}  // namespace xtape
