/// The terms of a segment of a tape.
#pragma once

#include "rewrite/terms.hpp"
#include "tape/graph.hpp"

namespace xtape {

/// A segment of a tape, and the limits of matching in it.
struct TapeSegment {
  Tape tape;
  std::vector<bool> nodes;             ///< Per node of the tape: whether it belongs to the segment.
  std::vector<ValueId> required = {};  ///< Values that others need, so no fusion may replace them.
  std::vector<ValueId> leaves = {};    ///< Values into whose computation matching does not look.
  bool looks_through_all = false;      ///< Whether to merge also the sums and products with several uses.
  /// The region of each node, or null for a single region. Matching does not look into values of another region.
  const std::vector<std::int32_t>* regions = {};

  const Node& node(std::int32_t index) const { return node_of(tape, index); }
  const ValueType& type(ValueId id) const { return type_of(tape, id); }
  std::int32_t region(std::int32_t node) const { return regions == nullptr ? 0 : (*regions)[node]; }
};

/// The terms of all values of a segment. The segment must outlive this object.
class CanonicalForm {
 public:
  explicit CanonicalForm(const TapeSegment& segment);

  TermTable terms;
  TermId of(ValueId id) const { return seen_[id].term; }
  /// Returns how often the nodes of the segment read a value, plus one if the value is required.
  std::int32_t uses(ValueId id) const { return seen_[id].uses; }
  /// Returns whether two values are one, or the results of equal calls on the same values.
  bool same(ValueId a, ValueId b) const;

 private:
  struct Seen {
    TermId term = -1;
    TermId as_value = -1, as_shared = -1;  ///< The `value` and `shared` terms, if there are any yet.
    std::int32_t uses = 0;
    bool leaf = false;
  };
  TermId as_value(ValueId id);
  TermId as_shared(ValueId id);
  TermId as_input(ValueId id, std::int32_t region);
  TermId canonical(std::int32_t index, std::int32_t output);

  const TapeSegment& segment_;
  ValueTable<Seen> seen_;
  std::vector<TermId> inputs_;  // inputs of one call; reused to save allocations
};

}  // namespace xtape
