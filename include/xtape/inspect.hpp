/// Inspection of plays: finds the first call that makes NaN or an infinity, and its causes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xtape/compiled.hpp"

namespace xtape {

/// A play as data.
struct RecordedPlay {
  Tape tape;
  Vars outputs;
  Store inputs;           ///< The arrays of inputs and states, by name.
  PlayerOptions options;  ///< The options of the player.
  std::uint64_t step = 0;
};
/// Returns the play of `player` with these feeds and its current states. Call it before the play, which changes the
/// states. Copies feeds and states, so the player may then continue.
RecordedPlay recorded_play(const Player& player, const std::vector<Feed>& feeds, std::uint64_t step = 0);
/// Returns the call of a function with `arguments` as a play. `player` must be Compiled::last, or Step::player of a
/// Step that records a function. If an update failed, `step` is Step::updates. Throws Error if the function takes
/// another number of arguments.
RecordedPlay recorded_call(const Player& player, const ArraysOrNumbers& arguments, std::uint64_t step = 0);

/// Writes a complete play to the folder `path`: a saved tape (Tape::save), the arrays of its inputs, and seed, step,
/// precision and bits. `outputs` are the names of the outputs. Replaces a saved play at `path`, but nothing else.
/// Throws FileError if the folder cannot be written, Error if the numbers of names and outputs differ.
void save_play(const RecordedPlay& play, const std::vector<std::string>& outputs, const std::string& path);
struct SavedPlay {
  RecordedPlay play;
  NamedVars outputs;  ///< The outputs of the play, in the order of RecordedPlay::outputs.
};
/// Reads a saved play. Throws FileError with file and line if the folder is not a saved play.
SavedPlay load_play(const std::string& path);
/// Whether `path` is a folder written by save_play. Checks only the names of its files.
bool is_saved_play(const std::string& path);

/// The range of the numbers in an array. For booleans, true counts as 1.
struct Range {
  double min = 0, max = 0;  ///< Over the finite elements. 0 if there are none.
  std::int64_t count = 0;
  std::int64_t zeros = 0, nans = 0, positive_infinities = 0, negative_infinities = 0;

  std::int64_t finite() const { return count - nans - positive_infinities - negative_infinities; }
  bool all_finite() const { return finite() == count; }
  double magnitude() const;  ///< The largest absolute value of the finite elements.
};
Range range_of(const ArrayView& values);
/// "-3.2 … 88.7", "0 … 3.4e38, 12 of 64 zero, 3 of 64 inf".
std::string to_string(const Range& range);

/// A value in the chain of causes of a failure.
struct Cause {
  std::string node;  ///< "#12 add", as in the printed tape. A source has its name, too: "#3 parameter 'h.0.w'".
  std::string type;
  std::string site;
  Range range;
  /// The index of the first element that is sufficient for the failure, or empty.
  std::vector<std::int64_t> element = {};
  std::string number = "";  ///< The value of this element: "-inf", "88.9".
  /// Inside a scan: the steps in which the call is a cause, as indices along the scan's axis. The last step played
  /// comes first.
  std::vector<std::int64_t> time_steps = {};
  std::string row = "";  ///< For an element of a batch, the source of its row: "train.csv, line 12".
};

/// A failed play. A call made NaN or an infinity, or threw an error.
struct Failure {
  std::string what;  ///< "NaN", "inf" or "-inf". For an error, its text.
  bool error = false;
  std::string op;
  std::string call;  ///< The op that was called. It may be recorded as other ops: "pow" for a node "sqrt".
  std::string node;  ///< "#12 exp", as in the caller's printed tape.
  std::string type;  ///< The type of the output: "float32 (2, 3)".
  std::string site;
  bool backward = false;  ///< Whether the node belongs to the gradient of the first output.
  /// Whether the numbers that are not finite come only from literals and masks. `node` is then an output of the play
  /// that these numbers reach.
  bool passed_on = false;
  /// One index for each scan around the call: the time step of the failure along the scan's axis. The outermost scan
  /// comes first.
  std::vector<std::int64_t> time_steps = {};
  std::vector<std::int64_t> element;  ///< The index of the first element that fails.
  Range range;                        ///< The range of the output.
  /// The chain of causes: an operand of the failing call that made it fail, then an operand of the call that computed
  /// this operand, and so on. An operand made a call fail if the failure disappears when 1, 0, 0.5 or -0.5 replaces its
  /// elements. If there are several such operands or none, the chain follows the operand with the largest numbers. The
  /// chain does not follow literals if there are other operands.
  std::vector<Cause> causes;
};
/// One line: call, type, range, element and site.
std::string to_string(const Cause& cause);
/// One line: what, op, type, site, and the farthest cause that is not finite. If there is no such cause, the line
/// contains the source of the batch row instead.
std::string to_string(const Failure& failure);

/// A failure, and the smallest tape that fails in the same way. The tape contains the failing call and the call that
/// computed its first cause. It also contains earlier calls along the chain of causes, as long as the causes are not
/// finite or exceed 1e4, up to 20 calls. All other operands of these calls are parameters or constants. The values have
/// the same bits on every processor with fused multiply-adds.
struct Capsule {
  Failure failure;
  Tape tape;
  NamedVars operands;  ///< Parameters, named as in the printed tape.
  NamedVars outputs;   ///< The outputs of the failing call.
  /// The checksums of the failing call's outputs, as find_failure computed them. Empty if the call throws.
  std::vector<std::uint64_t> digests = {};
  // The settings of the original play. The number of threads does not matter.
  std::string version, instruction_set;
  std::uint64_t seed = 0, step = 0;
  Precision precision = Precision::float32;
  Bits bits = Bits::usual;

  /// Writes a saved tape (Tape::save) and the file capsule.json to the folder `path`. Replaces a capsule at `path`, but
  /// nothing else. Throws FileError.
  void save(const std::string& path) const;
  /// Reads a capsule. Throws FileError with file and line if the folder is not a capsule.
  static Capsule load(const std::string& path);
};
/// Whether `path` is a folder written by Capsule::save. Checks only the names of its files.
bool is_capsule(const std::string& path);

/// Plays node by node, and finds the first call that makes the play fail. Returns nothing if all outputs are finite.
/// Takes the time of several slow plays.
///
/// A call makes the play fail if it throws, or if it makes NaN or infinities that reach an output. To test a call,
/// find_failure sets to 1 every NaN and infinity that any other call makes. Suppose that an element of a call's output
/// is NaN, inf or -inf. The call *makes* this value if the element keeps it after all operand elements that are NaN or
/// equal to this value are set to 1. If the element becomes finite instead, the call only passes the value on.
/// Infinities of literals and of masks (arrays of zeros and infinities of one sign) are intended. If only such
/// infinities reach the outputs, the failure is `passed_on`, and the capsule contains all calls on the way from them to
/// the output.
std::optional<Capsule> find_failure(const RecordedPlay& play);

/// Options of replaying a capsule.
struct ReplayOptions {
  int threads = 0;         ///< As in PlayerOptions.
  bool reference = false;  ///< Whether to replace each op by its expansion if it has one: Passes::reference().
  bool float64 = false;    ///< Whether to play all floats as float64.
};
struct Replay {
  std::string error;       ///< The error that the call throws, or "".
  Store outputs;           ///< Named like the capsule's outputs. Empty if the call throws.
  bool fails = false;      ///< Whether the call throws or an output is not finite.
  bool same_bits = false;  ///< Whether the outputs have the digests of the capsule, or the error is the same.
};
/// Returns the play of a capsule's tape.
RecordedPlay recorded_play(const Capsule& capsule);
/// Replays the capsule.
Replay replay(const Capsule& capsule, const ReplayOptions& options = {});

/// The rounding error of a node's output. All errors are relative: the RMS of the error divided by the RMS of the
/// values in float64.
struct NodeError {
  std::string node;  ///< "#12 add", as in the printed tape.
  std::string op;
  std::string module;  ///< Scope::path: "h.0.attn".
  std::string site;
  std::string type;
  std::int64_t elements = 0;
  double total = 0;  ///< The error compared with a play that is entirely in float64.
  /// The error of this node alone, compared with the node in float64 on the same operands.
  double made = 0;
  /// The error due to the operands: the node in float64 on the operands of the normal play, compared with the node in
  /// float64 on the operands of the float64 play.
  double inherited = 0;
  double of_operands = 0;    ///< The largest `total` of the operands.
  std::int64_t output = -1;  ///< The index among the outputs of the play. -1 if the value is not an output.
  std::int64_t flipped = 0;  ///< For integers and booleans: the number of elements that are different in float64.
  /// The number of elements that are finite in one of the two plays (normal and float64), but not in the other. The
  /// errors do not include these elements.
  std::int64_t overflows = 0;
  /// Inside a scan, `time_step` is the step that adds the largest error, and `time_steps` is the number of steps. Steps
  /// are numbered from 0 in the order of playing. The errors are those of this step. `flipped` and `overflows` are sums
  /// over all steps. Outside scans, `time_step` is -1.
  std::int64_t time_step = -1, time_steps = 0;
  double rms = 0;          ///< The RMS of the values in float64. 0 for a view of a value without error (a parameter).
  double operand_rms = 0;  ///< The largest `rms` of the operands. For a view, the `operand_rms` of its operand.
  /// The error that the node adds: the larger of its own error (`made`) and the growth of the inherited error. For
  /// example, a difference of nearly equal numbers makes no error, but amplifies the relative error of its operands.
  double added() const { return std::max(made, inherited - of_operands); }
};
/// Plays node by node, both normally and in float64. The float64 play takes the same path: integers and booleans come
/// from the normal play. Scans are unrolled, and their calls are measured step by step. Returns the errors of all
/// values, in the order of playing, except for sources and for values that nothing reads. shadow keeps the error of
/// each value as float32, so it needs about twice the memory of the play.
///
/// `rounded` contains rounded arrays of parameters by name, such as those of weights stored as int8. The normal play
/// uses these arrays, and the float64 play uses those of the tape. shadow then returns the errors of these parameters,
/// too.
std::vector<NodeError> shadow(const RecordedPlay& play, const Store& rounded = {});
/// Returns the nodes that add more than `threshold` to the error, in descending order.
std::vector<NodeError> ranked(std::vector<NodeError> errors, double threshold = 0);

/// A value that a gradient flows through.
struct FlowValue {
  std::string node;  ///< "#12 add", as in the printed tape.
  std::string site;
  std::string type;
  double norm = 0;   ///< The norm of the gradient of the loss with respect to the value.
  double zeros = 0;  ///< The share of elements of this gradient that are 0.
};
/// A place where a gradient ends.
struct FlowCut {
  std::string node;
  std::string site;
  std::string why;  ///< "argmax passes no gradient on", "it passes on less than a millionth of its gradient".
};
/// The path of a loss's gradient to a value.
struct GradientFlow {
  std::string name;
  double norm = 0;
  /// The calls that read the value. `norm` is the norm of the part of the gradient that flows back through the call.
  std::vector<FlowValue> uses;
  /// From the value to the loss, always through the use with the largest part of the gradient.
  std::vector<FlowValue> path;
  /// The calls that cut the gradient. They depend on the value, but pass back none of their gradient, or less than a
  /// millionth.
  std::vector<FlowCut> cuts;
};
/// Explains the gradient of the play's first output with respect to `value`. The output must be a float scalar.
GradientFlow explain_gradient(const RecordedPlay& play, const Var& value);
/// Returns the names of the float parameters that have no gradient. The first output does not depend on them, or only
/// through calls that pass no gradient on.
std::vector<std::string> parameters_without_gradient(const RecordedPlay& play);
/// Returns the names of the float parameters whose gradient exists and consists only of zeros in this play.
std::vector<std::string> parameters_with_zero_gradient(const RecordedPlay& play);

/// An array of a reference that differs from the play.
struct Mismatch {
  std::string name;  ///< The name in the reference: a module's path, a parameter, an output of the tape.
  std::string node;  ///< "#12 add", as in the printed tape.
  std::string site;
  std::string type;
  std::string reference_type;
  /// The RMS of the difference divided by the RMS of the reference. Infinite if the shapes differ.
  double relative = 0;
  /// The largest difference of an element. Infinite if the elements differ and one of them is not finite.
  double largest = 0;
  std::vector<std::int64_t> element;  ///< The index of the element with the largest difference. Empty if shapes differ.
  double ours = 0, theirs = 0;        ///< The values of this element in the play and in the reference.
  bool transposed = false;            ///< Whether the transpose of the reference matches.
  /// The calls that compute the value from matching values, line by line: "#11 einsum, #12 div, h.0.attn (…, line 12)".
  std::vector<std::string> calls;
  /// The source lines that apply modules: the module of the value, the modules of `calls` and of the matching values,
  /// and all modules that contain one of them. A mistake between modules, such as a forgotten residual connection, is
  /// in one of these lines.
  std::vector<std::string> applied;
};
/// The comparison of a play with reference arrays.
struct ReferenceComparison {
  std::vector<std::string> matched;  ///< In the order of playing.
  std::vector<Mismatch> mismatched;  ///< In the order of playing. The first mismatch is the most informative.
  std::vector<std::string> unknown;  ///< Names that are not on the tape.
};
/// Compares a play with the arrays of `reference`. Each array has the name of one of `outputs` (such as
/// "grad.h.0.attn.weight"), the name of a parameter, or the path of a module. The array of a path is compared with the
/// last value that the module computes in the forward pass and that has the shape of the array. All arrays are compared
/// as float64. Values match if the relative difference is at most `tolerance`. `applied` maps the path of a module to
/// the source lines that apply the module. Throws HandleError if an output belongs to another tape, Error if an array
/// of `reference` is empty.
ReferenceComparison compare(const RecordedPlay& play, const NamedVars& outputs, const Store& reference,
                            double tolerance = 1e-4,
                            const std::map<std::string, std::vector<std::string>>& applied = {});

/// Returns a float32, bfloat16 or float16 array as float64, and any other array unchanged.
Array in_float64(const Array& array);
/// A copy of a tape with all floats as float64, and vars of the copy.
struct WidenedTape {
  Tape tape;
  Vars vars;
};
/// Copies a tape with all floats as float64. Converts the parameters and constants, and infers the types of the nodes
/// again. WidenedTape::vars are the same values as `vars`, on the copy. Throws Error if an op does not accept float64,
/// HandleError if a var belongs to another tape.
WidenedTape in_float64(const Tape& tape, const Vars& vars);

}  // namespace xtape
