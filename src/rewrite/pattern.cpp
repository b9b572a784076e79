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
}  // namespace

RulePattern::RulePattern(const FusionRule& from) : rule(from) {
  rule.compiled = nullptr;
  Node node;
  node.op = rule.op;
  node.attributes = rule.attributes;
  Vars vars;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    const ValueType type = exact(rule.inputs[i]);
    vars.push_back(tape.input("in" + std::to_string(i), type.shape, type.dtype));
  }
  const Vars recorded = recorded_by(rule, {*rule.op, node, tape, vars});
  const std::int32_t root_node = recorded.at(0).id().node;
  for (std::size_t k = 0; k < recorded.size(); ++k) {
    const ValueId id = recorded[k].id();
    if (id.node == root_node) outputs.emplace_back(id.output, static_cast<std::int32_t>(k));
  }
  TapeSegment segment{tape, std::vector<bool>(tape.size(), true)};
  segment.looks_through_all = true;
  CanonicalForm form(segment);
  for (const Var& var : vars) inputs.push_back(form.of(var.id()));
  root = form.of(recorded[0].id());
  root_op = tape.node(root_node).op;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const TermId term = form.of({static_cast<std::int32_t>(i), 0});
    if (form.terms[term].kind != Term::Kind::contraction) continue;
    for (const auto& item : tape.node(i).attributes.items())
      if (const auto attribute = attribute_of(item.second)) {
        Equation equation{*attribute, {}};
        for (const ValueId& input : tape.node(i).inputs) equation.operands.push_back(form.of(input));
        equations.emplace(term, equation);
      }
  }
  terms = std::move(form.terms);
}

std::optional<std::size_t> RulePattern::input_of(TermId term) const {
  const auto found = std::find(inputs.begin(), inputs.end(), term);
  return found == inputs.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - inputs.begin()));
}

std::optional<std::size_t> RulePattern::attribute_of(const Attribute& literal) const {
  for (std::size_t i = 0; i < rule.attributes.items().size(); ++i) {
    const auto& attribute = rule.attributes.items()[i];
    const auto& specs = rule.op->attributes;
    const auto is_its = [&](const AttributeSpec& each) { return each.name == attribute.first; };
    const auto spec = std::find_if(specs.begin(), specs.end(), is_its);
    const bool is_default = spec != specs.end() && spec->initial == attribute.second;
    if (attribute.second == literal && !is_default) return i;
  }
  return std::nullopt;
}

const RulePattern& pattern_of(const FusionRule& rule) {
  FusionRule::Compiled& compiled = *rule.compiled;
  std::call_once(compiled.once, [&] { compiled.pattern = std::make_shared<const RulePattern>(rule); });
  return *compiled.pattern;
}

}  // namespace xtape
