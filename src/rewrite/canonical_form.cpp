#include "rewrite/canonical_form.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "xtape/op/op.hpp"

namespace xtape {

namespace {
std::uint64_t key_of(TermId term, std::int32_t region) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(region)) << 32) | static_cast<std::uint32_t>(term);
}

/// Returns the value of a float constant of rank 0, or nullopt for any other node.
std::optional<double> number_of(const Node& node) {
  if (!is_number(node)) return std::nullopt;
  if (node.outputs[0].dtype == Dtype::float32) return static_cast<double>(*node.storage.as<float>());
  if (node.outputs[0].dtype == Dtype::float64) return *node.storage.as<double>();
  return std::nullopt;
}

/// Returns whether a term of this kind is merged into a sum or product that reads it, if nothing else reads the term.
bool joins(Term::Kind kind) {
  return kind == Term::Kind::sum || kind == Term::Kind::product;
}
}  // namespace

CanonicalForm::CanonicalForm(const TapeSegment& segment) : segment_(segment) {
  const auto size = static_cast<std::int32_t>(segment.nodes.size());
  const auto belongs = [&](std::int32_t index) { return segment.nodes[index]; };
  seen_.extend(segment.tape, size, {});
  for (std::int32_t index = 0; index < size; ++index)
    if (belongs(index))
      for (const ValueId& input : segment.node(index).inputs) ++seen_[input].uses;
  for (const ValueId& id : segment.asked) ++seen_[id].uses;
  for (const ValueId& id : segment.opaque) seen_[id].opaque = true;
  for (std::int32_t index = 0; index < size; ++index) {
    if (!belongs(index)) continue;
    for (std::size_t k = 0; k < segment.node(index).outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      const TermId term = seen_[id].opaque ? as_value(id) : canonical(index, id.output);
      seen_[id].term = term;
      note_value(term, id);
    }
  }
}

void CanonicalForm::note_value(TermId term, ValueId id) {
  if (terms.size() > first_values_.size()) first_values_.resize(terms.size());
  ValueId& first = first_values_[term];
  if (first.node < 0)
    first = id;
  else if (const std::int32_t region = segment_.region(id.node); region != segment_.region(first.node))
    values_.emplace(key_of(term, region), id);
}

TermId CanonicalForm::as_value(ValueId id) {
  TermId& term = seen_[id].value_term;
  if (term < 0) term = terms.value(id, segment_.type(id));
  return term;
}

TermId CanonicalForm::as_input(ValueId id, std::int32_t region) {
  const TermId term = of(id);
  const Term::Kind kind = terms[term].kind;
  if (kind == Term::Kind::number) return term;
  if (segment_.region(id.node) != region) return as_value(id);
  const bool stays_apart = joins(kind) && uses(id) > 1 && !segment_.looks_through_all;
  return stays_apart ? as_value(*value_of(term, region)) : term;
}

TermId CanonicalForm::canonical(std::int32_t index, std::int32_t output) {
  const Node& node = segment_.node(index);
  const ValueType& type = node.outputs[output];
  if (const auto number = number_of(node)) return terms.number(*number, type);
  if (node.op->is_source() || node.body) return as_value({index, output});
  CanonicalCall call{terms, node, output, std::move(inputs_)};
  call.inputs.clear();
  for (const ValueId& input : node.inputs) call.inputs.push_back(as_input(input, segment_.region(index)));
  const TermId term = node.op->canonical ? node.op->canonical(call) : call.as_it_stands();
  inputs_ = std::move(call.inputs);
  return term;
}

std::optional<ValueId> CanonicalForm::value_of(TermId term, std::int32_t region) const {
  const Term& known = terms[term];
  if (known.kind == Term::Kind::value) return known.value;
  if (static_cast<std::size_t>(term) < first_values_.size()) {
    const ValueId first = first_values_[term];
    if (first.node >= 0 && segment_.region(first.node) == region) return first;
  }
  const auto found = values_.find(key_of(term, region));
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

TermId CanonicalForm::inside(TermId term, std::int32_t region) const {
  const Term& known = terms[term];
  if (known.kind != Term::Kind::value || segment_.region(known.value.node) != region) return term;
  const Seen& seen = seen_[known.value];
  return seen.opaque ? term : seen.term;
}

bool CanonicalForm::close(double a, double b, Dtype dtype) const {
  if (a == b || std::isinf(a) || std::isinf(b)) return a == b;
  const double epsilon =
      dtype == Dtype::float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return std::abs(a - b) <= 4 * epsilon * std::max(std::abs(a), std::abs(b));
}

}  // namespace xtape
