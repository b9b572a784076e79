/// Ops and the op table. The table has all information about an op, for recording, gradients, playing, printing, the
/// JSON language, the reference page and the tests of all ops. Users define ops like the library: docs/adding_an_op.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "xtape/op/lowering.hpp"
#include "xtape/op/terms.hpp"

namespace xtape {

/// Which dtypes an input takes, and whether it is promoted (see `apply` in tape.hpp).
enum class Accept : std::uint8_t {
  value,     ///< Any dtype; promoted to one dtype with the op's other `value` and `floating` inputs.
  floating,  ///< As `value`, and to a float: the tape's default dtype if no var is a float.
  integer,   ///< int32 or int64, not promoted (indices); a literal becomes int64.
  mask,      ///< bool, not promoted; a literal becomes bool.
  any        ///< Any dtype, not promoted; a literal becomes the tape's default dtype.
};
/// The number of operands that an input takes: 1, 0 or 1, or any. `optional` inputs and one of `many` come last.
enum class Arity : std::uint8_t { one, optional, many };

struct InputSpec {  ///< An input of an op: its name, the dtypes that it takes, and how many operands.
  std::string name;
  Accept accept = Accept::value;
  Arity arity = Arity::one;
};

/// The type of an attribute. `apply` converts a given value if nothing is lost; else it throws Error.
enum class AttributeType : std::uint8_t {
  boolean,
  integer,
  number,   ///< A double; an integer becomes one.
  element,  ///< A number used as an array element: a double, or an int64 if no double has its value.
  text,
  integers,  ///< A list; one integer becomes a list of it.
  dtype,     ///< A Dtype or its name; 'float' is the tape's default dtype, 'int' is int64.
  named_sizes
};
const char* name_of(AttributeType type);  ///< As in messages: "an integer", "true or false".

struct AttributeSpec {
  std::string name;
  AttributeType type = AttributeType::integer;
  std::string doc;                   ///< One sentence, for the reference and for errors.
  std::optional<Attribute> initial;  ///< The default; empty: the attribute must be given.
};

/// The argument of a gradient rule (Op::gradient).
struct GradientCall {
  const Op& op;
  const Node& node;         ///< A copy of the node; valid during the call.
  Vars inputs;
  Vars outputs;             ///< All of them, also those that `apply` does not return (Op::results).
  Vars cotangents;          ///< One per output, of its type; empty if the result does not depend on that output.
  std::vector<bool> needs;  ///< Per input: whether its gradient is needed. False for inputs that are not floats.
  /// xtape::grad(outputs, inputs, cotangents), for ops with bodies: records on the tape of the body.
  std::function<Vars(const Vars&, const Vars&, const Vars&)> grad;

  const Attributes& attributes() const { return node.attributes; }
  /// The cotangent of an output; records zeros if it is empty.
  Var cotangent(std::size_t output = 0) const;
};

/// The argument of a tangent rule (Op::tangent).
struct TangentCall {
  const Op& op;
  const Node& node;         ///< A copy of the node; valid during the call.
  Vars inputs;
  Vars outputs;
  Vars tangents;            ///< One per input, of its type; empty if the input does not vary.
  std::vector<bool> needs;  ///< Per output: whether its tangent is needed.
  /// xtape::jvp(outputs, inputs, tangents), for ops with bodies: records on the tape of the body.
  std::function<Vars(const Vars&, const Vars&, const Vars&)> jvp;
};

/// The argument of a batching rule (Op::batch): a call for one element of a batch, to be recorded for all of them.
struct BatchCall {
  const Op& op;
  const Node& node;          ///< The call for one element; valid during the call.
  Tape tape;                 ///< Where to record.
  Vars inputs;               ///< Vars of `tape`. Axis 0 of those that are `mapped` is the batch.
  std::vector<bool> mapped;  ///< Per input: whether it differs from element to element.
  std::int64_t size = 0;     ///< The number of elements.
  /// The body for all elements: inputs that are marked get the batch as axis 0, and so do all results.
  std::function<Tape(const Tape& body, const std::vector<bool>& mapped)> body;

  const Attributes& attributes() const { return node.attributes; }
  /// The number of axes of an input for one element.
  std::size_t rank(std::size_t input = 0) const { return inputs[input].rank() - (mapped[input] ? 1 : 0); }
  /// The input with the batch as axis 0: broadcast, if it is the same for all elements.
  Var whole(std::size_t input) const;
  Vars all_whole() const;
};

/// The argument of Op::expand and FusionRule::pattern.
struct ExpandCall {
  const Op& op;
  /// Valid during the call; its `inputs` are not ids of `tape`. For a rule's pattern it has op and attributes only.
  const Node& node;
  Tape tape;    ///< Where to record.
  Vars inputs;  ///< Vars of `tape`.
  const Attributes& attributes() const { return node.attributes; }
};

/// An op. Nodes and tables point to it, so define it as a function-local static and never change it. Its functions may
/// be called in several threads at once and must not keep state.
struct Op {
  std::string name = {};  ///< In tables, definitions and messages. Renaming changes the random numbers of its calls.
  std::string doc = {};  ///< One paragraph, with the formula.
  std::vector<InputSpec> inputs = {};
  std::vector<std::string> outputs = {"y"};  ///< Names. An op with a varying number (split) has one name for all.
  std::size_t results = 0;  ///< How many outputs `apply` returns; the others are for the gradient. 0: all.
  std::vector<AttributeSpec> attributes = {};

  /// The shape rule: the type of each output, from the types of the inputs and the attributes. `apply` checks arity and
  /// attributes first; kernels rely on both. The rule throws ShapeError, DtypeError or Error, saying what was received
  /// and what would be right; `apply` adds the op's name. The tape refuses types that no array can have, but the rule
  /// must not overflow when it computes sizes: see checked_add.
  std::function<std::vector<ValueType>(const OpCall&)> shape = {};

  /// The gradient rule: records the cotangents times the Jacobian and returns one var per input, of the input's type,
  /// empty where no gradient flows or `needs` is false. If there is no rule, or it returns no vars at all (it may not
  /// handle the cotangents of all outputs), `grad` differentiates `expand`; without `expand`, it throws Error. Not used
  /// if `differentiable` is false.
  std::function<Vars(const GradientCall&)> gradient = {};
  /// The tangent rule: records the Jacobian times the tangents and returns one var per output, of the output's type,
  /// empty where it is 0 or `needs` is false. Without one, `jvp` transposes the gradient rule.
  std::function<Vars(const TangentCall&)> tangent = {};
  /// The batching rule: records the call for all elements and returns all outputs, each with the batch as axis 0; no
  /// vars at all where it does not know how. Without one, `vmap` aligns the inputs of elementwise ops and maps the
  /// expansion of others.
  std::function<Vars(const BatchCall&)> batch = {};
  /// The expansion: records the meaning of the call in simpler ops, which must not expand to this op again, and returns
  /// all outputs. It defines the op: reference players use it in place of the kernel.
  std::function<Vars(const ExpandCall&)> expand = {};
  /// Records a call that is not one node (einsum of many operands; dropout, which is x itself outside mode train), and
  /// returns its outputs. Inputs are promoted, attributes complete. If it throws, `apply` removes what it recorded.
  /// Empty: record_call.
  std::function<Vars(Tape&, const Op&, const Vars&, const Attributes&)> record = {};
  /// Records `addend + (the node's only output)` as one op that adds in place, or returns an empty var to decline.
  /// Players call it where the output is only read by a sum (Lowering::adds). `addend` has the output's type.
  std::function<Var(const Node&, const Vars& inputs, const Var& addend)> accumulate = {};
  /// Where inputs[input] times `scale` is read: records the call on `inputs` and returns its only output, scaled to
  /// match. Returns an empty var if the scale varies along an axis that the op sums. Players call it where the input is
  /// a product that Lowering::scales describes. The scale has the rank of the input.
  std::function<Var(const Node&, const Vars& inputs, std::size_t input, const Var& scale)> scaled = {};

  /// The term of an output of a call, by which rules recognise it however it is written (terms.hpp). Must not throw.
  /// Empty: two calls are equal if op, attributes and inputs are.
  std::function<TermId(const CanonicalCall&)> canonical = {};

  // Traits.
  bool differentiable = true;  ///< False: no gradient flows through it (comparisons, argmax …).
  bool random = false;         ///< Draws random numbers: a function of seed, key of the site, step and element.
  bool own_derivative = false;  ///< Its derivative is not that of its expansion, which stands for its value only.
  Lowering lowering = {};      ///< How it is played.

  /// Whether it is input_op(), parameter_op() or constant_op(), which have no shape rule.
  bool is_source() const { return !shape; }
  bool is_view() const { return static_cast<bool>(lowering.view); }
};

/// Runs the shape rule, appends one node, and returns all its outputs: the last step of `apply`, for Op::record. Inputs
/// must be promoted and attributes complete. Throws DtypeError if inputs that promote together have different dtypes,
/// ShapeError if no array can have an output's type, HandleError for stale inputs and inputs of another tape, Error for
/// sources and a wrong number of inputs, and what the shape rule throws.
Vars record_call(Tape tape, const Op& op, const Vars& inputs, const Attributes& attributes,
                 std::shared_ptr<const Tape> body = nullptr);

/// The ops of sources: values fed at every play, arrays that play reads from a store, and arrays fixed on the tape.
const Op& input_op();
const Op& parameter_op();
const Op& constant_op();

/// A rule: one call of `op` replaces calls that compute the same, a pattern, matched in canonical form (terms.hpp),
/// however they are written. `grad` and players apply the rules of the tape's table.
struct FusionRule {
  std::string name;
  const Op* op = nullptr;
  /// A sample call, for which the pattern is recorded, with floats as float64. Where the pattern has the value of one
  /// of `attributes` (a number, a text, the key of a random call's site), any value matches, and the fused call gets
  /// it. So give each a distinctive value: one that equals the attribute's default matches only itself.
  std::vector<ValueType> inputs = {};
  Attributes attributes = {};
  /// Records the pattern and returns what the op's outputs are, the first one first. Empty: the op's `expand`.
  std::function<Vars(const ExpandCall&)> pattern = {};
  /// Why the rule should not be applied, given the fused call (plans report it); "": apply it. May be empty.
  std::function<std::string(const OpCall&)> refuses = {};
  /// The op computes gradients along with its value: a player applies the rule only where `grad` has applied it too and
  /// one of these gradients is used.
  bool gradients_beforehand = false;

  /// The pattern, recorded at the first use of the rule, which throws Error if that fails. OpTable::add makes it.
  struct Compiled {
    std::once_flag once;
    std::shared_ptr<const struct RulePattern> pattern;
  };
  std::shared_ptr<Compiled> compiled = {};
};
#ifndef XTAPE_NO_OLD_NAMES
using Rule [[deprecated("write FusionRule")]] = FusionRule;
#endif

/// Ops by name, and rules. builtin_ops() has those of the library. To use your own ops in definitions, copy it and add
/// to the copy. Reading is safe in several threads, adding is not.
class OpTable {
 public:
  /// Adds an op, which must outlive the table and the tapes that use it. Throws Error if its name is empty or exists,
  /// or it lacks a doc, a shape rule, or both a lowering and an `expand`.
  void add(const Op& op);
  /// Adds an op whose nodes have a body. A function records them (scan, checkpoint), so `ops`, `find` and `at` do not
  /// know the op, and definitions cannot call it; files of tapes name it. Throws as `add` does.
  void add_with_body(const Op& op);
  /// The op of nodes that name it in a file: an op of the table, one with a body, or a source. Null if there is none.
  const Op* find_recorded(const std::string& name) const;
  const Op* find(const std::string& name) const;  ///< Null if there is none.
  /// The op of that name. Throws Error, with the nearest name, if there is none.
  const Op& at(const std::string& name) const;
  const std::map<std::string, const Op*>& ops() const { return ops_; }  ///< All ops, by name.
  /// Adds a rule. Throws Error if its op is not in the table, if it has no pattern and its op no `expand`, or if it has
  /// no sample inputs.
  void add(FusionRule rule);
  const std::vector<FusionRule>& rules() const { return rules_; }

 private:
  void check(const Op& op) const;
  std::map<std::string, const Op*> ops_;
  std::map<std::string, const Op*> with_body_;
  std::vector<FusionRule> rules_;
};
/// The library's ops and rules. Made at the first call; lives as long as the program. Thread-safe.
const OpTable& builtin_ops();
/// The table of a tape: its own, or builtin_ops().
inline const OpTable& ops_of(const Tape& tape) { return tape.ops() != nullptr ? *tape.ops() : builtin_ops(); }

/// Writes the reference of all ops of the table, in Markdown (docs/ops.md).
void write_reference(const OpTable& table, std::ostream& out);

}  // namespace xtape
