/// Looking into plays: which call made the first value that is not finite, and where it came from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xtape/player.hpp"

namespace xtape {

/// A play, as data.
struct RecordedPlay {
  Tape tape;
  Vars outputs;
  Store inputs;           ///< The arrays of inputs and of states, by name.
  PlayerOptions options;  ///< Those of the player.
  std::uint64_t step = 0;
};
/// The play of `player` with these feeds, from its present states: call it before the play, which changes them. Copies
/// feeds and states, so that the player may go on.
RecordedPlay recorded_play(Player& player, const std::vector<Feed>& feeds, std::uint64_t step = 0);

/// Writes a play as a whole into the folder `path`: a saved tape (Tape::save) whose outputs have the names `outputs`,
/// the arrays of its inputs, and seed, step and precision. It plays the same bits anywhere, under the same instruction
/// set. Replaces a saved play there, but nothing else. Throws FileError, and Error unless there is a name for each
/// output.
void save_play(const RecordedPlay& play, const std::vector<std::string>& outputs, const std::string& path);
struct SavedPlay {
  RecordedPlay play;
  NamedVars outputs;  ///< The outputs of the play, in its order.
};
/// Throws FileError, with file and line, if the folder is not a saved play.
SavedPlay load_play(const std::string& path);
/// Whether `path` is a folder that save_play wrote, judged by its names.
bool is_saved_play(const std::string& path);

/// What numbers an array has. Of booleans, true counts as 1.
struct Range {
  double min = 0, max = 0;  ///< Over the finite elements; 0 if there are none.
  std::int64_t count = 0;
  std::int64_t zeros = 0, nans = 0, positive_infinities = 0, negative_infinities = 0;

  std::int64_t finite() const { return count - nans - positive_infinities - negative_infinities; }
  bool all_finite() const { return finite() == count; }
  double magnitude() const;  ///< The largest absolute value of the finite elements.
};
Range range_of(const ArrayView& values);
/// "-3.2 … 88.7", "0 … 3.4e38, 12 of 64 zero, 3 of 64 inf".
std::string to_string(const Range& range);

/// A value on the way to a failure.
struct Cause {
  std::string node;  ///< "#12 add", as in the printed tape; of a source with its name.
  std::string type;
  std::string site;
  Range range;
  std::vector<std::int64_t> element = {};  ///< The index of the first element that is enough for the failure, or empty.
  std::string number = "";                 ///< This element: "-inf", "88.9".
  /// Inside a scan: the indices along its axis of the steps in which the call is a cause, the last played first.
  std::vector<std::int64_t> time_steps = {};
  std::string row = "";  ///< For an element of a batch: the place of its row, "train.csv, line 12".
};

/// A play that went wrong: a call that made NaN or an infinity, or that threw an error.
struct Failure {
  std::string what;  ///< "NaN", "inf" or "-inf"; of an error its text.
  bool error = false;
  std::string op;
  std::string call;  ///< The op that was called, which may be recorded as other ops: "pow" of a node "sqrt".
  std::string node;  ///< "#12 exp", as in the printed tape of the caller.
  std::string type;  ///< The type of the output, "float32 (2, 3)".
  std::string site;
  bool backward = false;  ///< The node belongs to the gradient of the first output.
  /// No call makes the numbers that are not finite: `node`, an output of the play, gets them from a literal or a mask.
  bool passed_on = false;
  std::vector<std::int64_t> time_steps =
      {};                             ///< For each scan around the call, the outermost first: an index along its axis.
  std::vector<std::int64_t> element;  ///< The index of the first element that fails.
  Range range;                        ///< The range of the output.
  /// Where it came from: an operand of the call that made it fail, the operand of the call that computed this one, and
  /// so on. An operand made a call fail if the failure disappears when 1, 0, 0.5 or -0.5 replaces its elements; among
  /// several, or if there is none, the operand with the largest numbers is followed, and no literal beside other
  /// operands.
  std::vector<Cause> causes;
};
/// One line: call, type, range, the element, site.
std::string to_string(const Cause& cause);
/// One line: what, op, type, site, and the farthest cause that is not finite or, if there is none, the row of a batch
/// that it comes from.
std::string to_string(const Failure& failure);

/// A failure, and the smallest tape that fails in the same way: the failing call, the calls that computed those of its
/// causes that are out of range, and the arrays of their other operands as parameters. Its values have the same bits
/// under the same instruction set.
struct Capsule {
  Failure failure;
  Tape tape;
  NamedVars operands;  ///< Parameters, named as in the printed tape.
  NamedVars outputs;   ///< The outputs of the failing call.
  /// Digests of the outputs of the call when it failed in a play node by node; empty if the call throws.
  std::vector<std::uint64_t> digests = {};
  // How it was played, on any number of threads:
  std::string version, instruction_set;
  std::uint64_t seed = 0, step = 0;
  Precision precision = Precision::float32;

  /// Writes a saved tape (Tape::save) and the file capsule.json into the folder `path`. Replaces a capsule there, but
  /// nothing else. Throws FileError.
  void save(const std::string& path) const;
  /// Throws FileError, with file and line, if the folder is not a capsule.
  static Capsule load(const std::string& path);
};
/// Whether `path` is a folder that Capsule::save wrote, judged by its names.
bool is_capsule(const std::string& path);

/// Plays node by node and returns the first failure that the outputs depend on: the call fails the play even if ones
/// take the place of the NaN and infinities that other calls make. A call makes an element if it stays NaN, inf or -inf
/// when ones take the place of its operands' elements of the same kind. Infinities of literals and of masks, arrays of
/// 0 and -inf, are made by nobody: if they alone reach the outputs, the failure is `passed_on`, and the capsule has all
/// calls on their way. Nothing if all outputs are finite. Takes the time of several slow plays.
std::optional<Capsule> find_failure(const RecordedPlay& play);

/// How a capsule is played again.
struct ReplayOptions {
  int threads = 0;         ///< 0: all cores.
  bool reference = false;  ///< Plays the definitions of the ops: Passes::reference().
  bool float64 = false;    ///< With all floats as float64.
};
struct Replay {
  std::string error;       ///< What the call throws; "" if it throws nothing.
  Store outputs;           ///< Named like the capsule's outputs; empty if it throws.
  bool fails = false;      ///< Whether it throws or an output is not finite.
  bool same_bits = false;  ///< Whether the outputs have the digests of the capsule, or the error is the same.
};
/// The play of a capsule's tape.
RecordedPlay recorded_play(const Capsule& capsule);
/// Plays the capsule again.
Replay replay(const Capsule& capsule, const ReplayOptions& options = {});

/// The rounding error of a node's output. All numbers are relative: the root mean square of the error over that of the
/// values in float64.
struct NodeError {
  std::string node;  ///< "#12 add", as in the printed tape.
  std::string op;
  std::string module;  ///< "h.0.attn"; empty outside definitions.
  std::string site;
  std::string type;
  std::int64_t elements = 0;
  double total = 0;  ///< Against a play that is all in float64.
  /// The error that this node alone makes: against the node in float64, on the operands that it had.
  double made = 0;
  double inherited = 0;      ///< The error from its operands: between these two plays in float64.
  double of_operands = 0;    ///< The largest total error of its operands.
  std::int64_t output = -1;  ///< Its index among the outputs of the play; -1: it is none of them.
  std::int64_t flipped = 0;  ///< For outputs that are not floats: elements that differ in float64.
  /// Elements that are finite in only one of the play and the play in float64. They do not count in the errors.
  std::int64_t overflows = 0;
  /// Inside a scan: the step that adds most, in the order of playing, whose error this is, and the number of steps; -1
  /// outside scans.
  std::int64_t time_step = -1, time_steps = 0;
  double rms = 0;          ///< The root mean square of the values in float64; 0 of a view of exact values.
  double operand_rms = 0;  ///< The largest rms of the operands; of a view, that of its operand.
  /// What the node adds: the error that it makes, and the growth of the error that it inherits. A difference of nearly
  /// equal numbers makes no error, but lets the relative error of its operands grow.
  double added() const { return std::max(made, inherited - of_operands); }
};
/// Plays node by node, and beside it in float64, in which the play goes the same way: integers and booleans are those
/// of the play itself. Scans are opened: their calls are judged step by step. Returns the errors of all values but
/// sources and those that nothing needs, in the order of playing. Keeps the error of each value beside it, as float32,
/// so it needs about twice the memory of the play.
///
/// `rounded` has arrays for parameters by name, such as those of weights that are stored as int8: the play uses these,
/// and the play in float64 those of the tape. Returns their errors too.
std::vector<NodeError> shadow(const RecordedPlay& play, const Store& rounded = {});
/// The nodes that add more than `threshold` to the error, most first.
std::vector<NodeError> ranked(std::vector<NodeError> errors, double threshold = 0);

/// A value that a gradient flows through.
struct FlowStep {
  std::string node;  ///< "#12 add", as in the printed tape.
  std::string site;
  std::string type;
  double norm = 0;   ///< The norm of the gradient of the loss with respect to the value.
  double zeros = 0;  ///< The fraction of this gradient's elements that are 0.
};
/// A place where a gradient ends.
struct FlowCut {
  std::string node;
  std::string site;
  std::string why;  ///< "argmax is not differentiable", "all elements of its gradient are 0".
};
/// How the gradient of a loss reaches a value.
struct GradientFlow {
  std::string name;
  double norm = 0;
  std::vector<FlowStep> uses;  ///< The calls that read the value; `norm` is of the part that flows back through each.
  std::vector<FlowStep> path;  ///< From the value to the loss, always through the use with the largest part.
  std::vector<FlowCut> cuts;   ///< The ways from the value that do not reach the loss, or bring nothing back.
};
/// Explains the gradient of the play's first output, which must be a floating scalar, with respect to `value`.
GradientFlow explain_gradient(const RecordedPlay& play, const Var& value);
/// The parameters of floats whose gradient is missing because the first output does not depend on them differentiably.
std::vector<std::string> parameters_without_gradient(const RecordedPlay& play);
/// The other parameters of floats, if all elements of their gradient are 0 in this play.
std::vector<std::string> parameters_with_zero_gradient(const RecordedPlay& play);

/// An array of a reference that a play does not match.
struct Mismatch {
  std::string name;  ///< In the reference: a module's path, a parameter, an output of the tape.
  std::string node;  ///< "#12 add", as in the printed tape.
  std::string site;
  std::string type;
  std::string reference_type;
  /// The root mean square of the difference over that of the reference; infinite if types differ.
  double relative = 0;
  double largest = 0;                 ///< The largest difference of an element; infinite beside NaN and infinities.
  std::vector<std::int64_t> element;  ///< Where that is; empty if types differ.
  double ours = 0, theirs = 0;        ///< This element in the play and in the reference.
  bool transposed = false;            ///< The reference's transpose matches.
  /// The calls that compute the value from values that match, line by line: "#11 einsum, #12 div, h.0.attn (…, line
  /// 12)".
  std::vector<std::string> calls;
  /// The lines that apply the modules of the value, of the values that match, and those that contain them. A mistake
  /// between modules, such as a forgotten residual connection, is on one of them.
  std::vector<std::string> applied;
};
/// The comparison of a play with arrays from elsewhere.
struct ReferenceComparison {
  std::vector<std::string> matched;  ///< In the order of playing.
  std::vector<Mismatch> mismatched;  ///< The same; the first is the one to look at.
  std::vector<std::string> unknown;  ///< Names that the tape does not have.
};
/// Compares a play with `reference`: activations by the path of the module that returns them (its last value of that
/// shape), parameters by name, and outputs by the names that `outputs` gives them, such as "grad.h.0.attn.weight".
/// Arrays of other float widths are compared as float64. Values match if the relative difference is at most
/// `tolerance`. `applied` are the lines that apply modules, by their paths.
ReferenceComparison compare(const RecordedPlay& play, const NamedVars& outputs, const Store& reference,
                            double tolerance = 1e-4,
                            const std::map<std::string, std::vector<std::string>>& applied = {});

/// The array as float64 if it is float32 or a half, else itself.
Array in_float64(const Array& array);
/// The same tape with all floats as float64: its parameters and constants are converted, and the types of its nodes
/// are inferred again. `vars` become those of the new tape. Throws Error if an op does not take float64.
struct WidenedTape {
  Tape tape;
  Vars vars;
};
WidenedTape in_float64(const Tape& tape, const Vars& vars);

}  // namespace xtape
