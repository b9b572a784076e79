/// Finds where the rules of a table apply in a segment of a tape.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewrite/canonical_form.hpp"
#include "rewrite/pattern.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

struct RulePattern;

/// An input of a fused call: a value of the tape, or a call that is not yet on the tape.
struct FusedInput {
  ValueId value;  ///< The value, if `op` is null.
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<FusedInput> inputs;
};

/// A fused call that a rule found, with the nodes that the call replaces.
struct Fusion {
  const FusionRule* rule = nullptr;
  std::int32_t root = -1;                                      ///< The node whose value the fused call computes.
  std::vector<std::pair<std::int32_t, std::int32_t>> outputs;  ///< (output of the root, output of the fused call).
  std::vector<FusedInput> inputs;
  std::vector<TermId> terms;  ///< The terms of the inputs.
  Attributes attributes;
  std::vector<std::int32_t> interior;  ///< The replaced nodes other than the root.
};

/// Nodes that a rule would replace if a single obstacle did not prevent it.
struct NearMiss {
  const FusionRule* rule = nullptr;
  std::int32_t root = -1;
  std::string why;
  ValueId elsewhere;  ///< If other uses of an interior value are the obstacle: this value. Otherwise its node is -1.
  std::vector<std::int32_t> interior;
};

class Fusions {
 public:
  /// Matches the rules of `table` in `segment`, from its last node to its first. Tries the rules with the most nodes
  /// first. A node is part of at most one fusion. With `near`, also finds near misses, which about doubles the time.
  Fusions(const OpTable& table, TapeSegment segment, bool near = false);
  Fusions(const Fusions&) = delete;

  const std::vector<Fusion>& found() const { return found_; }
  const std::vector<NearMiss>& near_misses() const { return near_misses_; }
  /// Returns the fusion whose root is `node`, or null if there is none.
  const Fusion* at(std::int32_t node) const;
  /// Returns the fusions that are not applied because a value inside has other uses or is in `asked`.
  const std::vector<Fusion>& kept_open() const { return kept_open_; }
  /// Returns those calls after the root that have the mark `fused` and that equal the call that `fusion` would record.
  std::vector<std::int32_t> recorded_calls(const Fusion& fusion);

 private:
  bool is_call_of(const Fusion& fusion, std::int32_t index);
  TermId seen_as(ValueId id, std::int32_t region);
  void look_at(std::int32_t root);
  void drop_repeated_misses();
  bool apply(const FusionRule& rule, const RulePattern& pattern, std::int32_t root, bool near);
  bool bind(Fusion& fusion);
  bool locate(Fusion& fusion);
  bool find_read(std::int32_t root, const std::vector<TermId>& sought, std::unordered_map<TermId, ValueId>& read);
  bool place(TermId term, std::int32_t region, const std::unordered_map<TermId, ValueId>& read,
             FusedInput& input) const;
  bool are_equal_calls(ValueId a, ValueId b) const;
  std::optional<ValueId> read_elsewhere(Fusion& fusion) const;

  TapeSegment segment_;
  CanonicalForm form_;
  /// The rules for each kind of root term. Rules with the most nodes come first.
  std::array<std::vector<std::pair<const FusionRule*, const RulePattern*>>,
             static_cast<std::size_t>(Term::Kind::call) + 1>
      rules_;
  std::vector<std::int32_t>
      at_;  // per node: the index of the fusion with this root, -1 for no fusion, -2 inside a fusion
  std::vector<Fusion> found_, kept_open_;
  std::vector<NearMiss> near_misses_;
  Binding binding_;  // the binding of the match being tried; reused to save allocations
  bool near_ = false;
  bool indexed_ = false;
  std::unordered_multimap<TermId, std::int32_t> recorded_;  // marked calls, by the term of their first input
};

/// Returns the values of the tape that the fused call reads. Each value occurs once.
std::vector<ValueId> values_of(const Fusion& fusion);

/// Records the fused call on `tape` and returns its outputs. now(id) returns the var on `tape` for a value of the
/// segment.
Vars record_fusion(const Fusion& fusion, Tape tape, const std::function<Var(ValueId)>& now);

}  // namespace xtape
