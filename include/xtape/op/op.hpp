/// Ops and the op table. The table contains all information about an op, for recording, gradients, playing, printing,
/// the JSON language, the reference page and the tests of all ops. Users can define ops in the same way as the library:
/// docs/how_to/adding_an_op.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "xtape/op/lowering.hpp"

namespace xtape {

/// The dtypes that an input accepts, and its promotion (see `apply` in tape.hpp).
enum class Accept : std::uint8_t {
  value,     ///< Any dtype. Promoted to one dtype with the op's other `value` and `floating` inputs.
  floating,  ///< Like `value`, but promoted to a float: the tape's default dtype if no var is a float.
  integer,   ///< int32 or int64, not promoted (indices). A literal becomes int64.
  mask,      ///< bool, not promoted. A literal becomes bool.
  any        ///< Any dtype, not promoted. A literal becomes the tape's default dtype.
};
/// The number of operands of an input: exactly one, zero or one, or any number. `optional` inputs and one input with
/// `many` come last.
enum class Arity : std::uint8_t { one, optional, many };

struct InputSpec {  ///< An input of an op: its name, its accepted dtypes, and its number of operands.
  std::string name;
  Accept accept = Accept::value;
  Arity arity = Arity::one;
};

/// The type of an attribute. `apply` converts a given value if the conversion is exact. Otherwise it throws Error.
enum class AttributeType : std::uint8_t {
  boolean,
  integer,
  number,   ///< A double. An integer becomes a double.
  element,  ///< A number used as an array element: a double, or an int64 if no double represents it exactly.
  text,
  integers,  ///< A list. A single integer becomes a list.
  dtype,     ///< A Dtype or its name. 'float' is the tape's default dtype, 'int' is int64.
  named_sizes
};
const char* name_of(AttributeType type);  ///< The name in messages: "an integer", "true or false".

struct AttributeSpec {
  std::string name;
  AttributeType type = AttributeType::integer;
  std::string doc;                   ///< One sentence, for the reference and for errors.
  std::optional<Attribute> initial;  ///< The default. If empty, the attribute is required.
};

/// The argument of a gradient rule (Op::gradient).
struct GradientCall : CallAttributes {
  const Op& op;
  const Node& node;  ///< A copy of the node. Valid during the call.
  Vars inputs = {};
  Vars outputs = {};             ///< All outputs, including those that `apply` does not return (Op::Derivative::kept).
  Vars cotangents = {};          ///< One per output, of its type. Empty if the result does not depend on the output.
  std::vector<bool> needs = {};  ///< Per input, whether its gradient is needed. False if the input is not a float.
  /// xtape::grad(outputs, inputs, cotangents) for ops with bodies. Records on the tape of the body.
  std::function<Vars(const Vars&, const Vars&, const Vars&)> grad = {};

  /// The cotangent of an output. Records zeros if it is empty.
  Var cotangent(std::size_t output = 0) const;
};

/// The argument of a tangent rule (Op::Derivative::tangent).
struct TangentCall : CallAttributes {
  const Op& op;
  const Node& node;  ///< A copy of the node. Valid during the call.
  Vars inputs;
  Vars outputs;
  Vars tangents;            ///< One per input, of its type. Empty if the input does not vary.
  std::vector<bool> needs;  ///< Per output, whether its tangent is needed.
  /// xtape::jvp(outputs, inputs, tangents) for ops with bodies. Records on the tape of the body.
  std::function<Vars(const Vars&, const Vars&, const Vars&)> jvp;
};

/// The argument of a batching rule (Op::batch). It describes a call for one element of a batch. The rule records the
/// call for all elements.
struct BatchCall : CallAttributes {
  const Op& op;
  const Node& node;          ///< The call for one element. Valid during the call.
  Tape tape;                 ///< The tape to record on.
  Vars inputs;               ///< Vars of `tape`. For `mapped` inputs, axis 0 is the batch.
  std::vector<bool> mapped;  ///< Per input, whether it differs between elements.
  std::int64_t size = 0;     ///< The number of elements.
  /// Returns the body for all elements. The inputs marked in `mapped` and all results get the batch as axis 0.
  std::function<Tape(const Tape& body, const std::vector<bool>& mapped)> body;

  /// The number of axes of an input for one element.
  std::size_t rank(std::size_t input = 0) const { return inputs[input].rank() - (mapped[input] ? 1 : 0); }
  /// The input with the batch as axis 0. An input that is the same for all elements is broadcast.
  Var whole(std::size_t input) const;
  Vars all_whole() const;
};

/// The argument of Op::expand and FusionRule::pattern.
struct ExpandCall : CallAttributes {
  const Op& op;
  /// Valid during the call. Its `inputs` are not ids of `tape`. For the pattern of a rule, it contains only the op and
  /// the attributes.
  const Node& node;
  Tape tape;    ///< The tape to record on.
  Vars inputs;  ///< Vars of `tape`.
};

/// An op. Nodes and tables point to it, so define it as a function-local static and never change it. Several threads
/// may call its functions at once, so the functions must not keep state.
struct Op {
  /// What a few ops add to their gradient rule or expansion.
  struct Derivative {
    /// The tangent rule. Records the Jacobian times the tangents and returns one var per output, of the output's type.
    /// A var is empty if the tangent is 0 or `needs` is false. If there is no rule, `jvp` transposes the gradient rule.
    std::function<Vars(const TangentCall&)> tangent = {};
    /// Whether the derivative differs from that of the expansion, which then only defines the value.
    bool differs = false;
    std::size_t kept = 0;  ///< The number of last outputs that are for the gradient. `apply` does not return them.
  };

  /// How players may move an addition or a multiplication into a call, or out of it.
  struct Algebra {
    bool adds =
        false;  ///< Whether the output is input 0 + input 1, so that `accumulate` of a term may compute the sum.
    bool scales = false;  ///< Whether the output is input 0 times input 1, so that `scaled` may scale a result instead.
    /// Records `addend + (the node's only output)` as one op that adds in place, or returns an empty var to decline.
    /// Players call it if only a sum reads the output (`adds`). `addend` has the output's type.
    std::function<Var(const Node&, const Vars& inputs, const Var& addend)> accumulate = {};
    /// Records the call with inputs[input] instead of inputs[input] * scale, and returns the only output, scaled to
    /// give the same result. Returns an empty var if the scale varies along an axis that the op sums. Players call it
    /// if the input is a product that `scales` describes. The scale has the rank of the input.
    std::function<Var(const Node&, const Vars& inputs, std::size_t input, const Var& scale)> scaled = {};
  };

  /// The name in tables, definitions and messages. Renaming an op changes the random numbers of its calls.
  std::string name = {};
  std::string doc = {};  ///< One paragraph, with the formula.
  std::vector<InputSpec> inputs = {};
  /// The names of the outputs. An op with a varying number of outputs (split) has one name for all.
  std::vector<std::string> outputs = {"y"};
  std::vector<AttributeSpec> attributes = {};

  /// The shape rule. Computes the type of each output from the types of the inputs and the attributes. `apply` first
  /// checks arity and attributes, so kernels can rely on both. The rule throws ShapeError, DtypeError or Error with
  /// what was received and what would be right. `apply` adds the op's name. The tape rejects types that no array can
  /// have, but the rule must not overflow when it computes sizes (see checked_add).
  std::function<std::vector<ValueType>(const OpCall&)> shape = {};

  /// The gradient rule. Records the cotangents times the Jacobian and returns one var per input, of the input's type. A
  /// var is empty if no gradient flows or `needs` is false. The rule may return no vars at all, for example if it
  /// cannot handle the cotangents of all outputs. If there is no rule, or it returns no vars, `grad` differentiates
  /// `expand`. Without `expand`, `grad` throws Error. Not used if `differentiable` is false.
  std::function<Vars(const GradientCall&)> gradient = {};
  /// The batching rule. Records the call for all elements and returns all outputs, each with the batch as axis 0.
  /// Returns no vars at all if it does not support the call. If there is no rule, `vmap` aligns the inputs of
  /// elementwise ops, and maps the expansion of other ops.
  std::function<Vars(const BatchCall&)> batch = {};
  /// The expansion. Records the meaning of the call in simpler ops and returns all outputs. The simpler ops must not
  /// expand to this op again. The expansion defines the op. Reference players use it instead of the kernel.
  std::function<Vars(const ExpandCall&)> expand = {};
  /// Records a call that is not a single node, and returns its outputs. Examples are einsum of many operands, and
  /// dropout, which is x itself outside mode train. Inputs are promoted and attributes complete. If `record` throws,
  /// `apply` removes the recorded nodes. If empty, `apply` uses record_call.
  std::function<Vars(Tape&, const Op&, const Vars&, const Attributes&)> record = {};

  // Traits.
  bool differentiable = true;  ///< If false, no gradient flows through the op (comparisons, argmax …).
  /// Whether the op draws random numbers. They are a function of the seed, the key of the site, the step and the
  /// element.
  bool random = false;
  Lowering lowering = {};  ///< How players run the op.

  // Few ops have these.
  Derivative derivative = {};
  Algebra algebra = {};

  /// Whether the op is input_op(), parameter_op() or constant_op(). These have no shape rule.
  bool is_source() const { return !shape; }
  bool is_view() const { return static_cast<bool>(lowering.view); }
};

/// Runs the shape rule, appends one node, and returns all its outputs. This is the last step of `apply`, for use in
/// Op::record. Inputs must be promoted and attributes complete. Throws DtypeError if inputs that promote together have
/// different dtypes, ShapeError if no array can have an output's type, HandleError if an input is stale or belongs to
/// another tape, Error if the op is a source or the number of inputs is wrong. Errors of the shape rule propagate.
Vars record_call(Tape tape, const Op& op, const Vars& inputs, const Attributes& attributes,
                 std::shared_ptr<const Tape> body = nullptr);

/// The ops of the three sources. An input is fed at every play, a parameter is read from a store, and a constant is
/// fixed during recording.
const Op& input_op();
const Op& parameter_op();
const Op& constant_op();

/// A fusion rule: one call of `op` replaces calls that compute the same result. The pattern of the rule records these
/// calls. Matching uses canonical form, so it does not depend on how the calls are written. `grad` and
/// players apply the rules of the tape's table.
struct FusionRule {
  std::string name;
  const Op* op = nullptr;
  /// A sample call for recording the pattern, with floats as float64. If the pattern contains the value of one of
  /// `attributes` (a number, a text, the key of a random call's site), any value matches, and the fused call gets the
  /// matched value. Each attribute therefore needs a distinctive sample value. A sample value that equals the
  /// attribute's default matches only this value.
  std::vector<ValueType> inputs = {};
  Attributes attributes = {};
  /// Records the pattern and returns the equivalents of the op's outputs, starting with the first output. If empty, the
  /// pattern is the op's `expand`.
  std::function<Vars(const ExpandCall&)> pattern = {};
  /// Given the fused call, returns the reason not to apply the rule, or "" to apply it. Plans report the reason. Can be
  /// empty.
  std::function<std::string(const OpCall&)> refuses = {};
  /// Whether the op computes gradients along with its value. A player then applies the rule only if `grad` has also
  /// applied it and one of these gradients is used.
  bool gradients_beforehand = false;

  /// The recorded pattern. The first use of the rule records it, and throws Error if this fails. OpTable::add makes
  /// this object.
  struct Compiled {
    std::once_flag once;
    std::shared_ptr<const struct RulePattern> pattern;
  };
  std::shared_ptr<Compiled> compiled = {};
};

/// Ops by name, and rules. builtin_ops() contains those of the library. To use custom ops in definitions, copy
/// builtin_ops() and add the ops to the copy. Reading is safe in several threads at once, adding is not.
class OpTable {
 public:
  /// Adds an op. The op must outlive the table and the tapes that use it. Throws Error if its name is empty or exists
  /// already, or if it lacks a doc, a shape rule, or both a lowering and an `expand`.
  void add(const Op& op);
  /// Adds an op whose nodes have a body. Functions such as scan and checkpoint record these nodes, so `ops`, `find` and
  /// `at` do not return the op, and definitions cannot call it. Files of tapes contain its name. Errors are those of
  /// `add`.
  void add_with_body(const Op& op);
  /// Returns the op for a name in a file: an op of the table, an op with a body, or a source. Null if there is none.
  const Op* find_recorded(const std::string& name) const;
  const Op* find(const std::string& name) const;  ///< Null if there is none.
  /// The op of this name. Throws Error with the nearest name if there is none.
  const Op& at(const std::string& name) const;
  const std::map<std::string, const Op*>& ops() const { return ops_; }  ///< All ops, by name.
  /// Adds a rule. Throws Error if the rule's op is not in the table, if the rule has no sample inputs, or if the rule
  /// has no pattern and its op has no `expand`.
  void add(FusionRule rule);
  const std::vector<FusionRule>& rules() const { return rules_; }

 private:
  void check(const Op& op) const;
  std::map<std::string, const Op*> ops_;
  std::map<std::string, const Op*> with_body_;
  std::vector<FusionRule> rules_;
};
/// The library's ops and rules. The first call makes the table, which lives as long as the program. Thread-safe.
const OpTable& builtin_ops();
/// The table of a tape, or builtin_ops() if the tape has none.
inline const OpTable& ops_of(const Tape& tape) {
  return tape.ops() != nullptr ? *tape.ops() : builtin_ops();
}

/// Writes the Markdown reference of all ops of the table, as `xtape ops` prints it.
void write_reference(const OpTable& table, std::ostream& out);

}  // namespace xtape
