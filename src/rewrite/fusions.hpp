/// Finds where the rules of a table apply in a segment of a tape:
///  1. Each value of the segment gets a term, so that equivalent spellings look alike (canonical_form.hpp).
///  2. The pattern of each rule is recorded once, and gets terms in the same way (pattern.hpp). Rules with an op that
///  the
///     segment does not call are left out.
///  3. From the last node to the first, the term of each node is compared with the patterns, those with the most nodes
///     first. A match binds the inputs and attributes of the pattern to values and literals of the tape.
///  4. The rule applies if the op accepts these, if the calls between the root and the bound values read all of them,
///  if
///     the rule's condition holds, and if nothing outside reads a value between (views excepted, which then stay).
///     Otherwise, the place is a near miss.
///  5. The calls of a fusion are part of no other fusion.
#pragma once

#include <array>

#include "rewrite/pattern.hpp"

namespace xtape {

/// An input of a fused call: a value of the tape, or a call that is not yet on the tape.
struct FusedInput {
  ValueId value;  ///< The value, if `op` is null.
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<ValueId> inputs;
};

/// A fused call that a rule found, with the nodes that the call replaces.
struct Fusion {
  const FusionRule* rule = nullptr;
  std::int32_t root = -1;                                      ///< The node whose value the fused call computes.
  std::vector<std::pair<std::int32_t, std::int32_t>> outputs;  ///< (output of the root, output of the fused call).
  std::vector<FusedInput> inputs;
  Attributes attributes;
  std::vector<std::int32_t> interior;  ///< The replaced nodes other than the root, last node first.

  /// Returns the values of the tape that the fused call reads. Each value occurs once.
  std::vector<ValueId> values() const;
  /// Returns whether the fused call gives an output of the root.
  bool gives(std::int32_t output) const;
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
  /// With `finds_misses`, also finds near misses, which about doubles the time.
  Fusions(const OpTable& table, TapeSegment segment, bool finds_misses = false);
  Fusions(const Fusions&) = delete;

  const std::vector<Fusion>& found() const { return found_; }
  const std::vector<NearMiss>& near_misses() const { return near_misses_; }
  /// Returns the fusions that only uses of an interior value elsewhere prevent.
  const std::vector<Fusion>& prevented() const { return prevented_; }
  /// Returns the fusion whose root is `node`, or null if there is none.
  const Fusion* at(std::int32_t node) const;
  /// Returns those calls after the root that have the mark `fused` and that equal the call that `fusion` would record.
  std::vector<std::int32_t> recorded_calls(const Fusion& fusion) const;

 private:
  bool apply(const RulePattern& pattern, std::int32_t root, bool may_miss);
  bool bind(Fusion& fusion);
  bool place(TermId term, FusedInput& input) const;
  bool find_interior(Fusion& fusion) const;
  std::optional<ValueId> read_elsewhere(Fusion& fusion) const;
  bool is_input(const FusedInput& input, ValueId id) const;
  void drop_repeated_misses();

  TapeSegment segment_;
  CanonicalForm form_;
  std::vector<std::int32_t> fusion_of_;  // per node: the index of the fusion with this root, or -1
  std::vector<bool> replaced_;           // per node: whether a fusion replaces it
  std::vector<std::int32_t> marked_;     // the calls of fused ops with the mark `fused`
  std::vector<Fusion> found_, prevented_;
  std::vector<NearMiss> near_misses_;
  Binding binding_;  // the binding of the match being tried; reused to save allocations
};

/// Records the fused call on `tape` and returns its outputs. now(id) returns the var on `tape` for a value of the
/// segment.
Vars record_fusion(const Fusion& fusion, Tape tape, const std::function<Var(ValueId)>& now);

}  // namespace xtape
