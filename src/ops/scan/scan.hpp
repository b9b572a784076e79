/// The attributes of a scan node, and its recording. Private to ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ops/recording/op_helpers.hpp"
#include "xtape/scan.hpp"

namespace xtape {

/// The attributes of a scan node. Its inputs are the sequences, the initial states, and the non-sequences, which are
/// the same at every step. The inputs of the body are a slice of each sequence, the states and the non-sequences. The
/// outputs of the node are the stacked outputs and the final states. The results of the body are the outputs and states
/// of one step.
struct ScanForm : Stepping {
  ScanForm() = default;
  explicit ScanForm(const Attributes& attributes);
  explicit ScanForm(const Stepping& steps) : Stepping(steps) {}
  Attributes attributes() const;
};

/// The type of ScanOptions::checkpoint_every.
using Segments = std::vector<std::int64_t>;

const Op& scan_op();
Vars scan_gradient(const GradientCall& call);
Vars scan_tangent(const TangentCall& call);
Vars scan_batch(const BatchCall& call);
/// The expansion, which records every step separately.
Vars scan_unrolled(const ExpandCall& call);

/// Where `mask` is false, sets the outputs of a step to 0, and the next states to the states before the step. Throws
/// ShapeError if the sizes of the mask are not the first sizes of every output and state.
void keep_where_false(const Var& mask, const Vars& states, Vars& outputs, Vars& next);

/// The settings of a function that records a scan, besides the options of `scan`.
struct ScanKind {
  const char* name = "scan";  ///< The name of the function, for errors.
  std::int64_t length = 0;    ///< The number of steps if there is no sequence to determine it.
  /// If true, the first sequence, or the first state if there is no sequence, says whether a step takes place.
  bool conditional = false;
  bool stacks_states = false;  ///< Whether the states after every step are further stacked outputs.
};
Scanned record_scan(Tape tape, const ScanFunction& cell, const Vars& inputs, const Vars& init,
                    const ScanOptions& options, const ScanKind& kind);

/// Returns the body of a step, rewritten so that only ops without inputs draw random numbers. Other ops that draw, such
/// as dropout, are replaced by their expansions. Throws Error if such an op has no expansion.
Tape with_draws_apart(const Tape& body);

/// Returns the body after fusion rules have been applied. The rules are applied before the scan is recorded, so that
/// the gradient reads only values that a player of the fused body computes.
Tape with_fused_calls(const Tape& body);

/// The values of a var at all steps, stacked in one array.
struct Sequence {
  Var var;
  std::int64_t axis = 0;  ///< The axis of the steps.
};

/// A step on its own tape, from which a scan is recorded. The caller declares values of the step's tape as slices of
/// sequences, states, or vars of the outer tape. The body contains only what varies between steps. Three kinds of nodes
/// are recorded on the outer tape instead. The first kind depends only on outer vars. The second kind is a random
/// array, drawn for all steps at once. The third kind is computed for all steps at once: a product of a slice and a
/// value that does not vary (the projection of an input), or a look-up of a slice in such a value (an embedding). In a
/// conditional scan, the third kind stays in the body, because a step that does not take place must cost nothing and
/// must not add 0 times infinity to a gradient. The third kind also stays in the body of a scan without states. Such a
/// scan is a loop over blocks, which should stay in the cache.
class ScanStep {
 public:
  ScanStep(Tape outer, Tape step, std::int64_t length, bool reverse, Segments segments = {});

  /// These functions declare what a value is. If a value is declared twice, the first declaration counts.
  void set_sequence(ValueId value, const Sequence& sequence);
  void set_state(ValueId value, const Var& first);
  void set_outer(ValueId value, const Var& var);
  /// Makes the scan conditional: steps take place where `value`, a slice of a sequence or a state, is true. Call it
  /// before `varies`, `sequence` and `outer`.
  void set_condition(ValueId value) { condition_ = value; }

  bool conditional() const { return condition_.node >= 0; }
  bool varies(ValueId value);  ///< Whether the value may differ between steps.
  bool is_state(ValueId value) const;
  const Sequence* sequence(ValueId value) const;  ///< Null if the value is not a slice of a sequence.
  Var outer(ValueId value);                       ///< The var of the outer tape for a value that does not vary.
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
  /// Records the scan with the outputs `stacked`. `next` contains the next states in the order of the set_state calls.
  /// After the outputs `stacked`, the node has further stacked outputs: all other values that a step computes. The
  /// gradient reads those that it needs. scan_pass of the player removes the others.
  Recorded record(const std::vector<Stacked>& stacked, const std::vector<ValueId>& next);

 private:
  std::vector<bool> needed_nodes(const std::vector<ValueId>& results);
  Sequence drawn(const Node& node);
  Sequence projected(const Node& node);
  bool is_projection(const Node& node);

  Tape outer_;
  Tape step_;
  std::int64_t length_;
  bool reverse_;
  Segments segments_;  // only the segments that are shorter than the scan
  std::unordered_map<ValueId, Sequence> sequences_;
  std::unordered_map<ValueId, Var> outers_;
  std::vector<std::pair<ValueId, Var>> states_;
  ValueId condition_{-1, 0};
  std::vector<bool> varies_;        // per node, up to the last node that was queried
  std::optional<DrawnKeys> draws_;  // the draws of the outer tape
};

/// While a step is recorded on the outer tape, these ops stand for the slice of a sequence and for the state before the
/// step.
const Op& step_slice_op();
const Op& step_state_op();

/// Records a scan. Its step consists of the nodes from `size` on, and `results` are the outputs followed by the next
/// states. The nodes are removed from the tape. `form` need not contain the axes of inputs. In a conditional scan, the
/// first slice or state says whether a step takes place.
ScanStep::Recorded record_step(Tape tape, std::size_t size, const Vars& results, const ScanForm& form,
                               const Segments& segments, bool conditional = false);

/// Records the computation of the scan of `body` as a scan over segments of segments[0] steps. The step of this scan is
/// a checkpoint whose body is the scan of one segment. The states before each segment are therefore kept. The gradient
/// computes all other values again, one segment at a time. A shorter remaining segment comes last, as a scan without
/// checkpoint, because the gradient begins with it. Returns the outputs of the scan of `body`.
Vars record_segments(Tape tape, const Tape& body, const Vars& inputs, const ScanForm& form, const Segments& segments);

/// The body of a recorded scan on a separate tape. Its sequences, its non-sequences and its stacked results are
/// declared to `step`, so no step computes them again. The stacked results include the state before each step. A
/// condition is declared to `step`, too. If the condition is a state, the stacked state is false where no step took
/// place.
struct RecordedBody {
  RecordedBody(const Tape& outer, const Node& node, const Vars& given, const Vars& outputs, bool reverse)
      : tape(outer.blank()), step(outer, tape, ScanForm(node.attributes).length, reverse) {
    const ScanForm form(node.attributes);
    first_state = form.sequences();
    first_non_sequence = first_state + static_cast<std::size_t>(form.states);
    const std::vector<ValueId> ids = node.body->inputs();
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const ValueType type = node.body->type(ids[k]);
      inputs.push_back(tape.input("in" + std::to_string(k), type.shape, type.dtype));
      if (k < first_state) step.set_sequence(inputs[k].id(), {given[k], form.input_axes[k]});
      if (k >= first_non_sequence) step.set_outer(inputs[k].id(), given[k]);
    }
    results = inline_body(tape, *node.body, inputs);
    for (std::size_t k = 0; k < form.stacked(); ++k)
      step.set_sequence(results[k].id(), {outputs[k], form.output_axes[k]});
    if (form.condition >= 0) step.set_condition(inputs[static_cast<std::size_t>(form.condition)].id());
  }
  Tape tape;
  ScanStep step;
  Vars inputs, results;  ///< The inputs and results of the body.
  std::size_t first_state, first_non_sequence;
};

/// The states of a scan along axis 1 of tokens that have a past (Tape::set_past). The states after every position are
/// cached in the same way as keys and values.
class CachedStates {
 public:
  /// Throws ShapeError if a state does not have the rows of the tokens along axis 0.
  CachedStates(Tape tape, const Var& past, const Vars& init);
  /// Returns the states after each row's last position, or `init` for rows without a past.
  const Vars& before() const { return before_; }
  /// Caches the states [b, t, …] after the current positions.
  void hold(const Vars& states);

 private:
  Tape tape_;
  Var past_;
  Vars held_;
  Vars before_;
};

}  // namespace xtape
