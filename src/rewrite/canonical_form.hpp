/// The terms of a segment of a tape.
#pragma once

#include <unordered_map>
#include <vector>

#include "tape/graph.hpp"
#include "xtape/op/terms.hpp"

namespace xtape {

/// A segment of a tape, and the limits of matching in it.
struct TapeSegment {
  Tape tape;
  std::vector<bool> nodes;           ///< Per node of the tape: whether it belongs to the segment.
  std::vector<ValueId> asked = {};   ///< Required values, which no fusion may replace.
  std::vector<ValueId> opaque = {};  ///< Values that match only as values: matching ignores how they are computed.
  bool looks_through_all = false;    ///< Whether to merge also the sums and products with several uses.
  /// The region of each node, or null for a single region. A value of another region matches only as a value.
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
  /// The term of a value as an operand of a node in `region`. A value of another region becomes a `value` term unless
  /// it is a literal. A sum or product with several uses also becomes a `value` term, so it is a single operand of sums
  /// and products.
  TermId as_input(ValueId id, std::int32_t region);
  /// Returns how often the nodes of the segment read a value, plus one if the value is in `asked`.
  std::int32_t uses(ValueId id) const { return seen_[id].uses; }
  /// Returns the first value of this term in the region, or nullopt if there is none.
  std::optional<ValueId> value_of(TermId term, std::int32_t region) const;
  /// Returns the term of the computation of a value, given its `value` term. Returns `term` itself if it is not a
  /// `value` term, if its value is opaque, or if the value is computed in another region.
  TermId inside(TermId term, std::int32_t region) const;
  /// Returns whether two literals count as equal: they differ by at most four units in the last place of the dtype.
  bool close(double a, double b, Dtype dtype) const;

 private:
  struct Seen {
    TermId term = -1;
    TermId value_term = -1;  ///< The `value` term, if as_value() was called.
    std::int32_t uses = 0;
    bool opaque = false;
  };
  TermId as_value(ValueId id);
  TermId canonical(std::int32_t index, std::int32_t output);
  void note_value(TermId term, ValueId id);

  const TapeSegment& segment_;
  ValueTable<Seen> seen_;
  std::vector<TermId> inputs_;                         // inputs of one call; reused to save allocations
  std::vector<ValueId> first_values_;                  // per term: the first value
  std::unordered_map<std::uint64_t, ValueId> values_;  // (region, term): the first value, unless first_values_ has it
};

}  // namespace xtape
