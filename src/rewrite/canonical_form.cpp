#include "rewrite/canonical_form.hpp"

#include <algorithm>
#include <unordered_map>

namespace xtape {

namespace {
/// One output of a call whose term is needed.
struct TermCall : CallAttributes {
  TermTable& terms;
  const Node& node;
  std::int32_t output;
  const std::vector<TermId>& in;  ///< The terms of the inputs.

  const ValueType& type() const { return node.outputs[static_cast<std::size_t>(output)]; }
  const ValueType& type(std::size_t input) const { return terms[in[input]].type; }
  TermId as_it_stands() const {
    return terms.call(*node.op, node.attributes, in, type(), output, node.op->random ? node.site.key : 0);
  }
};

using AxisList = std::vector<std::int64_t>;

/// Returns `axes` of input 0 as sorted negative axes. If there are none, returns all axes. A term with negative axes
/// also matches arrays with more leading axes.
AxisList from_the_back(const TermCall& call, AxisList axes) {
  const auto rank = static_cast<std::int64_t>(call.type(0).shape.size());
  if (axes.empty())
    for (std::int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  for (std::int64_t& axis : axes) axis -= axis < 0 ? 0 : rank;
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Returns the reduction of x over negative axes, which stay with size 1.
TermId reduced(const TermCall& call, const Op& op, TermId x, const AxisList& axes) {
  Shape shape = call.terms[x].type.shape;
  for (const std::int64_t axis : axes) shape[shape.size() - static_cast<std::size_t>(-axis)] = 1;
  return call.terms.call(op, {{"axis", axes}, {"keepdims", true}}, {x}, call.terms.stored({call.type().dtype, shape}));
}

TermId reduction(const TermCall& call) {
  const AxisList axes = from_the_back(call, call.integers("axis"));
  return call.terms.reshaped(reduced(call, *call.node.op, call.in[0], axes), call.type());
}

TermId variance_term(const TermCall& call) {
  if (call.integer("correction") != 0) return call.as_it_stands();
  const AxisList axes = from_the_back(call, call.integers("axis"));
  const Op& mean = term_ops().mean;
  const TermId centred = call.terms.sum(call.in[0], 1, reduced(call, mean, call.in[0], axes), -1, call.type(0));
  return call.terms.reshaped(reduced(call, mean, call.terms.power(centred, 2), axes), call.type());
}

TermId softmax_term(const TermCall& call) {
  const auto rank = static_cast<std::int64_t>(call.type(0).shape.size());
  const auto axis = call.integer("axis");
  return call.terms.call(*call.node.op, {{"axis", axis < 0 ? axis : axis - rank}}, call.in, call.type());
}

TermId power_term(const TermCall& call) {
  const Term& exponent = call.terms[call.in[1]];
  const bool is_literal = exponent.kind == Term::Kind::number && call.type() == call.type(0);
  return is_literal ? call.terms.power(call.in[0], exponent.number) : call.as_it_stands();
}

TermId selection_term(const TermCall& call) {
  const Term &a = call.terms[call.in[1]], &b = call.terms[call.in[2]];
  if (a.kind == Term::Kind::number) return call.terms.filled(call.in[2], call.in[0], a.number, call.type());
  if (b.kind != Term::Kind::number) return call.as_it_stands();
  return call.terms.filled(call.in[1], call.terms.opposite(call.in[0]), b.number, call.type());
}

TermId transposition(const TermCall& call) {
  const std::size_t rank = call.type().shape.size();
  std::string order;
  for (const std::int64_t axis : call.integers("axes")) order += static_cast<char>(normal_axis(axis, rank));
  for (std::size_t i = rank; order.size() < rank; --i) order += static_cast<char>(i - 1);
  return call.terms.transposed(call.in[0], order, call.type());
}

/// Removes a reshape of the logits that keeps their last axis, because the rows may have any number of axes.
TermId cross_entropy_term(const TermCall& call) {
  const Term& logits = call.terms[call.in[0]];
  if (logits.op != &term_ops().reshape || call.output == 2) return call.as_it_stands();
  Shape shape = call.terms[logits.parts[0].term].type.shape;
  if (shape.empty() || shape.back() != logits.type.shape.back()) return call.as_it_stands();
  shape.erase(shape.size() - 1);
  const TermId targets = call.terms.reshaped(call.in[1], call.terms.stored({call.type(1).dtype, shape}));
  return call.terms.call(*call.node.op, call.node.attributes, {logits.parts[0].term, targets}, call.type(),
                         call.output);
}

/// How the calls of an op become terms. Integers wrap, so sums and products are only for floats.
struct TermRule {
  TermId (*term)(const TermCall&);
  bool floats_only = false;
};

const TermRule* rule_of(const Op& op) {
  static const std::vector<std::pair<const char*, TermRule>> by_name = {
      {"add", {[](const TermCall& c) { return c.terms.sum(c.in[0], 1, c.in[1], 1, c.type()); }, true}},
      {"sub", {[](const TermCall& c) { return c.terms.sum(c.in[0], 1, c.in[1], -1, c.type()); }, true}},
      {"mul", {[](const TermCall& c) { return c.terms.product(c.in[0], c.in[1], c.type()); }, true}},
      {"div", {[](const TermCall& c) { return c.terms.product(c.in[0], c.terms.power(c.in[1], -1), c.type()); }, true}},
      {"neg", {[](const TermCall& c) { return c.terms.scaled(c.in[0], -1); }, true}},
      {"square", {[](const TermCall& c) { return c.terms.power(c.in[0], 2); }, true}},
      {"sqrt", {[](const TermCall& c) { return c.terms.power(c.in[0], 0.5); }, true}},
      {"rsqrt", {[](const TermCall& c) { return c.terms.power(c.in[0], -0.5); }, true}},
      {"pow", {power_term, true}},
      {"where", {selection_term, true}},
      {"masked_fill",
       {[](const TermCall& c) {
          return c.terms.filled(c.in[0], c.in[1], c.node.attributes.number("value").as<double>(), c.type());
        },
        true}},
      {"einsum", {[](const TermCall& c) { return c.terms.contraction(c.in, c.text("equation"), c.type()); }, true}},
      {"logical_not", {[](const TermCall& c) { return c.terms.opposite(c.in[0]); }}},
      {"reshape", {[](const TermCall& c) { return c.terms.reshaped(c.in[0], c.type()); }}},
      {"expand_dims", {[](const TermCall& c) { return c.terms.reshaped(c.in[0], c.type()); }}},
      {"squeeze", {[](const TermCall& c) { return c.terms.reshaped(c.in[0], c.type()); }}},
      {"transpose", {transposition}},
      {"broadcast_to", {[](const TermCall& c) { return c.type(0) == c.type() ? c.in[0] : c.as_it_stands(); }}},
      {"softmax", {softmax_term}},
      {"log_softmax", {softmax_term}},
      {"var", {variance_term}},
      {"cross_entropy", {cross_entropy_term}},
      {"sum", {reduction}},
      {"mean", {reduction}},
      {"max", {reduction}},
      {"min", {reduction}},
      {"any", {reduction}},
      {"all", {reduction}},
  };
  static const auto by_op = [] {
    std::unordered_map<const Op*, TermRule> rules;
    for (const auto& [name, rule] : by_name) rules.emplace(&builtin_ops().at(name), rule);
    return rules;
  }();
  const auto found = by_op.find(&op);
  return found == by_op.end() ? nullptr : &found->second;
}

/// Returns the value of a float constant of rank 0, or nullopt for any other node.
std::optional<double> number_of(const Node& node) {
  if (!is_number(node)) return std::nullopt;
  if (node.outputs[0].dtype == Dtype::float32) return static_cast<double>(*node.storage.as<float>());
  if (node.outputs[0].dtype == Dtype::float64) return *node.storage.as<double>();
  return std::nullopt;
}
}  // namespace

CanonicalForm::CanonicalForm(const TapeSegment& segment) : segment_(segment) {
  const auto size = static_cast<std::int32_t>(segment.nodes.size());
  seen_.extend(segment.tape, size, {});
  for (std::int32_t index = 0; index < size; ++index)
    if (segment.nodes[index])
      for (const ValueId& input : segment.node(index).inputs) ++seen_[input].uses;
  for (const ValueId& id : segment.required) ++seen_[id].uses;
  for (const ValueId& id : segment.leaves) seen_[id].leaf = true;
  for (std::int32_t index = 0; index < size; ++index)
    for (std::size_t k = 0; segment.nodes[index] && k < segment.node(index).outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      const TermId term = seen_[id].leaf ? as_value(id) : canonical(index, id.output);
      seen_[id].term = term;
      terms.set_value(term, id);
    }
}

TermId CanonicalForm::as_value(ValueId id) {
  TermId& term = seen_[id].as_value;
  if (term < 0) term = terms.add({.value = id, .type = segment_.type(id)});
  return term;
}

TermId CanonicalForm::as_shared(ValueId id) {
  TermId& term = seen_[id].as_shared;
  if (term < 0)
    term = terms.add({.kind = Term::Kind::shared, .parts = {{of(id)}}, .value = id, .type = segment_.type(id)});
  return term;
}

/// The term of a value as an operand of a node in `region`.
TermId CanonicalForm::as_input(ValueId id, std::int32_t region) {
  const Term::Kind kind = terms[of(id)].kind;
  if (kind == Term::Kind::number) return of(id);
  if (segment_.region(id.node) != region) return as_value(id);
  const bool joins = kind == Term::Kind::sum || kind == Term::Kind::product;
  return joins && uses(id) > 1 && !segment_.looks_through_all ? as_shared(id) : of(id);
}

TermId CanonicalForm::canonical(std::int32_t index, std::int32_t output) {
  const Node& node = segment_.node(index);
  const ValueType& type = node.outputs[static_cast<std::size_t>(output)];
  if (const auto number = number_of(node))
    return terms.add({.kind = Term::Kind::number, .number = *number, .type = type});
  if (node.op->is_source() || node.body) return as_value({index, output});
  inputs_.clear();
  for (const ValueId& input : node.inputs) inputs_.push_back(as_input(input, segment_.region(index)));
  const TermCall call{{node.attributes}, terms, node, output, inputs_};
  const TermRule* rule = rule_of(*node.op);
  if (rule != nullptr && (!rule->floats_only || is_floating(type.dtype))) return rule->term(call);
  return call.as_it_stands();
}

bool CanonicalForm::same(ValueId a, ValueId b) const {
  if (a == b || a.node < 0 || b.node < 0) return a == b && a.node >= 0;
  const Node &first = segment_.node(a.node), &second = segment_.node(b.node);
  return first.op == second.op && !first.op->is_source() && !first.op->random && !first.body && a.output == b.output &&
         !seen_[a].leaf && !seen_[b].leaf && segment_.region(a.node) == segment_.region(b.node) &&
         first.inputs == second.inputs && first.attributes == second.attributes;
}

}  // namespace xtape
