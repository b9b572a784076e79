/// What a rule looks for: its pattern, recorded on a tape of its own and brought to canonical form. Private to the
/// layer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "canonical_form.hpp"
#include "xtape/op.hpp"

namespace xtape {

struct RulePattern {
  /// Records the pattern of `rule`.
  explicit RulePattern(const Rule& rule);

  /// Where an equation of the pattern stands for any: which attribute it gives, and its operands in their order.
  struct Equation {
    std::size_t attribute;
    std::vector<TermId> operands;
  };

  Rule rule;  ///< Its own: tables are copied, and end.
  Tape tape;
  Terms terms;
  TermId root = -1;
  const Op* root_op = nullptr;
  std::vector<TermId> inputs;
  std::vector<std::pair<std::int32_t, std::int32_t>> outputs;  ///< (output of the root's node, output of the op).
  std::map<TermId, Equation> equations;

  /// The input of the rule that a term of the pattern is; nothing if it is none.
  std::optional<std::size_t> input_of(TermId term) const;
  /// The attribute that a literal of the pattern stands for; nothing if it stands for itself.
  std::optional<std::size_t> attribute_of(const Attribute& literal) const;
};

/// The pattern of a rule, recorded once.
const RulePattern& pattern_of(const Rule& rule);

/// What a pattern's inputs and attributes are at a place of a tape.
struct Binding {
  std::vector<TermId> inputs;                        ///< -1 where there is none yet.
  std::vector<std::optional<Attribute>> attributes;  ///< In the order of the rule's.
  std::string miss;  ///< The one literal that is another than the rule's; empty: none is.
};

/// Tries to match `pattern` with the term `found` of a region. Calls `accept` for every way to do so until it returns
/// true. With `near`, one literal of the pattern may be another: Binding::miss then says which.
bool match(const RulePattern& pattern, CanonicalForm& form, TermId found, std::int32_t region, bool near,
           const std::function<bool(const Binding&)>& accept);

}  // namespace xtape
