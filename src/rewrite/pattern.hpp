/// The pattern of a rule, recorded on its own tape and converted to canonical form. Private to the layer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewrite/canonical_form.hpp"
#include "xtape/op/op.hpp"
#include "xtape/op/terms.hpp"

namespace xtape {

// The result of a match. Private to the layer.

/// The terms and attributes of a tape that match the inputs and attributes of a pattern.
struct Binding {
  std::vector<TermId> inputs;                        ///< -1 for an input that is not bound yet.
  std::vector<std::optional<Attribute>> attributes;  ///< In the order of the rule's attributes.
  std::string miss;  ///< Describes the one literal that differs from the rule's; empty if all are equal.
};

struct RulePattern {
  /// Records the pattern of `rule`.
  explicit RulePattern(const FusionRule& rule);

  /// A contraction of the pattern whose equation is an attribute of the rule, so any equation matches. Stores the index
  /// of this attribute, and the operands in the order of the equation.
  struct Equation {
    std::size_t attribute;
    std::vector<TermId> operands;
  };

  FusionRule rule;  ///< A copy, because the table of the rule may be copied or destroyed.
  Tape tape;
  TermTable terms;
  TermId root = -1;
  const Op* root_op = nullptr;
  std::vector<TermId> inputs;
  std::vector<std::pair<std::int32_t, std::int32_t>> outputs;  ///< (output of the root's node, output of the op).
  std::map<TermId, Equation> equations;

  /// Returns the index of the rule's input that a term of the pattern stands for, or nullopt if the term is not an
  /// input.
  std::optional<std::size_t> input_of(TermId term) const;
  /// Returns the index of the attribute that a literal of the pattern stands for, or nullopt if the literal must match
  /// exactly.
  std::optional<std::size_t> attribute_of(const Attribute& literal) const;
};

/// Returns the pattern of a rule. Each pattern is recorded once.
const RulePattern& pattern_of(const FusionRule& rule);

/// Matches `pattern` with the term `found` of a region. Sets `binding` to each possible binding and calls `accept`,
/// until `accept` returns true. With `near`, one literal may differ from the pattern's literal. Binding::miss then
/// describes the difference.
bool match(const RulePattern& pattern, CanonicalForm& form, TermId found, std::int32_t region, bool near,
           Binding& binding, const std::function<bool()>& accept);

}  // namespace xtape
