/// The terms of a stretch of tape.
#pragma once

#include <unordered_map>
#include <vector>

#include "xtape/terms.hpp"

namespace xtape {

/// A part of a tape, and who looks at it.
struct TapeStretch {
  Tape tape;
  std::vector<bool> nodes;                        ///< Which of the tape's nodes belong to it.
  std::vector<ValueId> asked = {};                ///< Values that must stay whatever is fused.
  std::vector<ValueId> opaque = {};               ///< Values that nothing looks through.
  bool looks_through_all = false;                 ///< Through what is read at several places too.
  const std::vector<std::int32_t>* regions = {};  ///< Per node; what is of another region is not looked through.

  std::int32_t region(std::int32_t node) const {
    return regions == nullptr ? 0 : (*regions)[static_cast<std::size_t>(node)];
  }
};

class CanonicalForm {
 public:
  explicit CanonicalForm(const TapeStretch& stretch);

  Terms terms;
  TermId of(ValueId id) const { return terms_[place(id)]; }
  /// The term of a value as a node of the region sees it: what comes from another region is a value that nothing is
  /// known of, and what is read at several places is one operand of sums and products.
  TermId as_input(ValueId id, std::int32_t region);
  /// How often the stretch reads a value; asking for it counts.
  std::int32_t uses(ValueId id) const { return uses_[place(id)]; }
  /// The first value of that term in the region; nothing if there is none.
  std::optional<ValueId> value_of(TermId term, std::int32_t region) const;
  /// What a term that is read at several places is made of; the term itself where it is no such.
  TermId inside(TermId term, std::int32_t region) const;
  /// How close literals must be to count as equal: a few units in the last place of the dtype.
  bool close(double a, double b, Dtype dtype) const;

 private:
  std::size_t place(ValueId id) const {
    return first_[static_cast<std::size_t>(id.node)] + static_cast<std::size_t>(id.output);
  }
  TermId canonical(std::int32_t index, std::int32_t output);

  const TapeStretch& stretch_;
  std::vector<std::size_t> first_;  // per node: the place of its first output
  std::vector<TermId> terms_;
  std::vector<std::int32_t> uses_;
  std::vector<bool> opaque_;
  std::unordered_map<std::uint64_t, ValueId> values_;  // (region, term)
};

}  // namespace xtape
