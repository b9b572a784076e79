/// The pattern of a rule, recorded once and in canonical form, and its comparison with terms of a tape. Private to the
/// layer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rewrite/canonical_form.hpp"

namespace xtape {

struct RulePattern {
  /// Records the pattern of `rule`.
  explicit RulePattern(const FusionRule& rule);

  FusionRule rule;  ///< A copy, because the table of the rule may be copied or destroyed.
  Tape tape;
  TermTable terms;
  TermId root = -1;
  const Op* root_op = nullptr;
  std::vector<TermId> inputs;
  std::vector<std::pair<std::int32_t, std::int32_t>> outputs;  ///< (output of the root's node, output of the op).
  /// The parts of each term. In sums and products, the rule's inputs come last, because the other parts determine them.
  std::vector<Term::Parts> parts;

  /// Returns the index of the rule's input that a term of the pattern stands for, or nullopt.
  std::optional<std::size_t> input_of(TermId term) const;
  /// Returns the index of the attribute that a literal of the pattern stands for, or nullopt if the literal must match
  /// exactly.
  std::optional<std::size_t> attribute_of(const Attribute& literal) const;

 private:
  std::vector<std::optional<Attribute>> samples_;  // of each attribute, unless it is the default
};

/// Returns the pattern of a rule. Each pattern is recorded once.
const RulePattern& pattern_of(const FusionRule& rule);

/// The terms and attributes of a tape that match the inputs and attributes of a pattern.
struct Binding {
  std::vector<TermId> inputs;                        ///< -1 for an input that is not bound yet.
  std::vector<std::optional<Attribute>> attributes;  ///< In the order of the rule's attributes.
  std::string miss;  ///< Describes the one literal that differs from the rule's; empty if all are equal.
};

/// Returns false if a pattern surely does not match the term `found`. Nearly all terms fail this quick test.
bool may_match(const RulePattern& pattern, const TermTable& terms, const Term& found);

/// Matches `pattern` with the term `found`. Sets `binding` to each possible binding and calls `accept`, until `accept`
/// returns true. If `may_miss`, one literal may differ from the pattern's; Binding::miss describes it.
bool match(const RulePattern& pattern, CanonicalForm& form, TermId found, bool may_miss, Binding& binding,
           const std::function<bool()>& accept);

}  // namespace xtape
