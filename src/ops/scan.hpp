/// The node of a scan: what its attributes say, and the recording of one. Private to ops.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "xtape/op.hpp"

namespace xtape {

/// The form of a scan node. Its inputs are the sequences, the first states, and what every step sees alike; so are the
/// body's, with one slice for each sequence. Its outputs are the stacked outputs and the last states; the body's
/// results those of one step.
struct ScanForm : Stepping {
  ScanForm() = default;
  explicit ScanForm(const Attributes& attributes);
  explicit ScanForm(const Stepping& steps) : Stepping(steps) {}
  Attributes attributes() const;
};

const Op& scan_op();
Vars scan_gradient(const GradientCall& call);

/// The body of a step with everything that it draws as random arrays by themselves. Throws Error where that cannot be.
Tape with_draws_apart(const Tape& body);

/// The body with the calls in it that a rule fuses. What a step computes is offered to the gradient, and so has to be
/// what is played.
Tape with_fused_calls(const Tape& body);

/// The equation of a product of two, with the axis of the steps written into the operands and the result; -1: not
/// there.
std::string over_steps(const std::string& equation, std::int64_t a_axis, std::int64_t b_axis, std::int64_t result_axis);

/// An array that holds what a value is at every step.
struct Sequence {
  Var var;
  std::int64_t axis = 0;  ///< Of the steps.
};

/// A step on a tape of its own, on its way to become the body of a scan. Values of the step's tape are said to be
/// slices of sequences, states, or vars of the outer tape. What depends on none but the last is no part of the body: it
/// is recorded on the outer tape. There, too, random arrays are drawn for all steps at once, and so are slices
/// multiplied by what does not vary, or taken from it (the projection of an input, an embedding).
class ScanStep {
 public:
  ScanStep(Tape outer, Tape step, std::int64_t length, bool reverse);

  /// Says what a value is. Of two sayings the first counts.
  void set_sequence(ValueId value, const Sequence& sequence);
  void set_state(ValueId value, const Var& first);
  void set_outer(ValueId value, const Var& var);

  bool varies(ValueId value);  ///< Whether it may differ from step to step.
  bool is_state(ValueId value) const;
  const Sequence* sequence(ValueId value) const;  ///< Null where it was not said to be one.
  Var outer(ValueId value);                       ///< On the outer tape: a value that does not vary.
  const Tape& tape() const { return step_; }
  const Tape& outer_tape() const { return outer_; }
  std::int64_t length() const { return length_; }

  struct Stacked {
    ValueId value;
    std::int64_t axis = 0;
  };
  struct Recorded {
    Vars stacked;
    Vars states;
  };
  /// Records the scan, whose outputs are `stacked`; `next` are the states in the order of set_state. Behind its outputs
  /// the node offers everything that a step computes, stacked: the gradient takes what it needs, and the player leaves
  /// out the rest.
  Recorded record(const std::vector<Stacked>& stacked, const std::vector<ValueId>& next);

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;
  static Key key_of(ValueId id) { return {id.node, id.output}; }
  std::vector<bool> needed_nodes(const std::vector<ValueId>& results);
  Sequence drawn(const Node& node);
  Sequence projected(const Node& node);
  bool is_projection(const Node& node);

  Tape outer_;
  Tape step_;
  std::int64_t length_;
  bool reverse_;
  std::map<Key, Sequence> sequences_;
  std::map<Key, Var> outers_;
  std::vector<std::pair<ValueId, Var>> states_;
  std::vector<bool> varies_;  // per node, as far as it has been asked
};

/// The states of a scan along axis 1 of tokens that have a past (Tape::set_past).
class CachedStates {
 public:
  /// Throws ShapeError where the states have not the rows of the tokens.
  CachedStates(Tape tape, const Var& past, const Vars& init);
  /// What each row's last position left; `init` where nothing stands behind it.
  const Vars& before() const { return before_; }
  /// Takes in the states [b, t, …] that the present positions left.
  void hold(const Vars& states);

 private:
  Tape tape_;
  Var past_;
  Vars held_;
  Vars before_;
};

}  // namespace xtape
