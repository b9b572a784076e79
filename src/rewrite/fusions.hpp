/// Where the rules of a table apply in a stretch of tape.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "canonical_form.hpp"
#include "xtape/op.hpp"

namespace xtape {

/// What a rule's input stands for: a value of the tape, or a call that is not recorded there yet.
struct FusedInput {
  ValueId value;  ///< Where `op` is null.
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<FusedInput> inputs;
};

/// A place where a rule applies.
struct Fusion {
  const Rule* rule = nullptr;
  std::int32_t root = -1;                                      ///< The node whose value the fused call gives.
  std::vector<std::pair<std::int32_t, std::int32_t>> outputs;  ///< (output of the root, output of the fused call).
  std::vector<FusedInput> inputs;
  std::vector<TermId> terms;  ///< Of the inputs.
  Attributes attributes;
  std::vector<std::int32_t> interior;  ///< Nodes that nothing else needs.
};

/// A place where a rule would apply but for one thing.
struct NearMiss {
  const Rule* rule = nullptr;
  std::int32_t root = -1;
  std::string why;
  ValueId elsewhere;  ///< The value inside that is read elsewhere, where that is why; else of no node.
  std::vector<std::int32_t> interior;
};

class Fusions {
 public:
  /// Looks for the rules of `table` in `stretch`, from its last node to its first: the rule that replaces most comes
  /// first, and what one has taken no other takes.
  /// `near` looks for near misses too, which takes as long again.
  Fusions(const OpTable& table, TapeStretch stretch, bool near = false);
  Fusions(const Fusions&) = delete;

  const std::vector<Fusion>& found() const { return found_; }
  const std::vector<NearMiss>& near_misses() const { return near_misses_; }
  /// The fusion whose root is `node`; null if there is none.
  const Fusion* at(std::int32_t node) const;
  /// Of a rule that was not applied because a value inside is read elsewhere or asked for.
  const std::vector<Fusion>& kept_open() const { return kept_open_; }
  /// The calls behind the root that are marked as `fused`, and are what `fusion` would record.
  std::vector<std::int32_t> recorded_calls(const Fusion& fusion);

 private:
  bool is_call_of(const Fusion& fusion, std::int32_t index);
  TermId seen_as(ValueId id, std::int32_t region);
  void look_at(std::int32_t root);
  void drop_repeated_misses();
  bool apply(const Rule& rule, std::int32_t root, bool near);
  bool bind(const Rule& rule, const struct Binding& binding, Fusion& fusion);
  bool locate(Fusion& fusion);
  bool find_read(std::int32_t root, const std::vector<TermId>& sought, std::unordered_map<TermId, ValueId>& read);
  bool place(TermId term, std::int32_t region, const std::unordered_map<TermId, ValueId>& read,
             FusedInput& input) const;
  bool are_equal_calls(ValueId a, ValueId b) const;
  std::optional<ValueId> read_elsewhere(Fusion& fusion) const;

  TapeStretch stretch_;
  CanonicalForm form_;
  std::vector<const Rule*> rules_;
  std::vector<std::int32_t>
      at_;  // per node: the number of the fusion whose root it is; -1: of none; -2: it is inside one
  std::vector<Fusion> found_, kept_open_;
  std::vector<NearMiss> near_misses_;
  bool near_ = false;
  bool indexed_ = false;
  std::unordered_multimap<TermId, std::int32_t> recorded_;  // marked calls, by the term of their first input
};

/// The values of the tape that the fused call is made from, each once.
std::vector<ValueId> values_of(const Fusion& fusion);

/// Records the fused call on `tape`; `now` says what the stretch's values are there. Gives the call's outputs.
Vars record_fusion(const Fusion& fusion, Tape tape, const std::function<Var(ValueId)>& now);

}  // namespace xtape
