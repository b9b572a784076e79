/// A row of the op table: all that is known of an op. The table drives recording, playing, printing, the JSON language,
/// the reference page, and the tests that every op must pass. Users' ops enter by the same row.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 2
#error "this layer of xtape may not see the tape layer"
#endif

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "xtape/lowering.hpp"
#include "xtape/terms.hpp"

namespace xtape {

/// What an input takes.
enum class Accept : std::uint8_t {
  value,     ///< Any dtype; literals and mixed dtypes are promoted together with the op's other `value`/`floating` inputs.
  floating,  ///< As `value`, and the outcome must be a float.
  integer,   ///< int32 or int64, by itself (indices).
  mask,      ///< bool, by itself.
  any        ///< Any dtype, by itself.
};
enum class Arity : std::uint8_t { one, optional, many };  ///< optional and many only at the end of the list.

struct InputSpec {
  std::string name;
  Accept accept = Accept::value;
  Arity arity = Arity::one;
};

enum class AttributeType : std::uint8_t {
  boolean,
  integer,
  number,   ///< A double.
  element,  ///< A number that becomes an element of an array: an integer that no double is stays one.
  text,
  integers,
  dtype,  ///< A Dtype or its name; 'float' is the tape's default dtype, 'int' int64.
  named_sizes
};
const char* name_of(AttributeType type);

struct AttributeSpec {
  std::string name;
  AttributeType type = AttributeType::integer;
  std::string doc;
  std::optional<Attribute> initial;  ///< The default; without one the attribute must be given.
};

/// What a gradient rule sees. It returns one var per input, recorded with ops; an empty var where nothing flows.
struct GradientCall {
  const Op& op;
  const Node& node;  ///< A copy: it stays valid while the tape grows.
  Vars inputs;
  Vars outputs;
  Vars cotangents;          ///< One per output; empty where nothing depends on that output.
  std::vector<bool> needs;  ///< Per input: whether its gradient is wanted.
  /// The sweep itself, for ops with bodies: grad(outputs, inputs, cotangents) on the body's tape.
  std::function<Vars(const Vars&, const Vars&, const Vars&)> grad;

  const Attributes& attributes() const { return node.attributes; }
  /// The cotangent of an output; zeros are recorded where nothing depends on it.
  Var cotangent(std::size_t output = 0) const;
};

/// What an `expand` sees: it records the op's meaning in simpler ops and returns the outputs.
struct ExpandCall {
  const Op& op;
  const Node& node;  ///< A copy: it stays valid while the tape grows.
  Tape tape;
  Vars inputs;
  const Attributes& attributes() const { return node.attributes; }
};

struct Op {
  std::string name = {};
  std::string doc = {};  ///< One paragraph, with the formula.
  std::vector<InputSpec> inputs = {};
  std::vector<std::string> outputs = {"y"};  ///< Names. An op whose count varies (split) has one name for all.
  std::size_t results = 0;  ///< How many outputs a call gives its caller; the rest serve the gradient. 0: all.
  std::vector<AttributeSpec> attributes = {};

  /// Output types from input types and attributes. Throws ShapeError or DtypeError saying what would be right.
  std::function<std::vector<ValueType>(const Call&)> shape = {};

  /// Without one, `expand` is differentiated; without both, none flows. A rule that returns no vars at all leaves this
  /// call to `expand` too (where a cotangent reaches an output that the rule does not provide for).
  std::function<Vars(const GradientCall&)> gradient = {};
  std::function<Vars(const ExpandCall&)> expand = {};
  /// How the call is recorded, where that is not one node: n-ary einsum, a part that the mode switches off.
  std::function<Vars(Tape&, const Op&, const Vars&, const Attributes&)> record = {};
  /// Records `addend + this node's output` so that the sum is made in place, or returns an empty var.
  std::function<Var(const Node&, const Vars& inputs, const Var& addend)> accumulate = {};

  /// The call's term, for finding equal meanings in unequal spellings (xtape/terms.hpp). Without one, calls are equal
  /// where op, attributes and inputs are.
  std::function<TermId(const CanonicalCall&)> canonical = {};

  // Traits.
  bool differentiable = true;        ///< False: no gradient is ever asked of it, by its nature (comparisons, argmax …).
  bool random = false;               ///< Draws from (seed, site, step, element).
  Lowering lowering = {};            ///< How it runs.

  /// One of the three rows of what comes from outside the tape.
  bool is_source() const { return !shape; }
  bool is_view() const { return static_cast<bool>(lowering.view); }
};

/// Runs the shape rule and appends the node: what `apply` does at its end, and what a row's `record` calls. Returns all
/// outputs.
Vars record_call(Tape tape, const Op& op, const Vars& inputs, const Attributes& attributes,
                 std::shared_ptr<const Tape> body = nullptr);

/// The rows of what comes from outside the tape, and of the fixed arrays on it.
const Op& input_op();
const Op& parameter_op();
const Op& constant_op();

/// A rule of rewriting: a call of `op` takes the place of other calls that mean the same. It is found by their canonical
/// form, so that their spelling does not matter.
struct Rule {
  std::string name;
  const Op* op = nullptr;
  /// A call to record the pattern for. Where the pattern has an attribute's number, text or site as it is here, any may
  /// stand, and the fused call has what stands there: give each a value of its own, other than the attribute's default.
  std::vector<ValueType> inputs = {};
  Attributes attributes = {};
  /// Records what to look for, first what the call's first output is; where it is empty, the op's `expand` does.
  std::function<Vars(const ExpandCall&)> pattern = {};
  /// Why the call should not be put in; empty where it should.
  std::function<std::string(const Call&)> refuses = {};
  /// The op computes gradients beforehand: a player puts it in only where `grad` has done so too and one is in use.
  bool gradients_beforehand = false;

  /// The pattern, recorded at its first use.
  struct Compiled {
    std::once_flag once;
    std::shared_ptr<const struct RulePattern> pattern;
  };
  std::shared_ptr<Compiled> compiled = {};
};

/// Ops by name. The library's own are `builtin_ops()`; copy it and add to it for an own language with own ops.
class OpTable {
 public:
  /// Adds a row, which must outlive the tapes it is used on. Throws Error where the name is taken or the row is not whole.
  void add(const Op& op);
  const Op* find(const std::string& name) const;  ///< Null where there is none.
  /// The row of that name; throws Error with the nearest name where there is none.
  const Op& at(const std::string& name) const;
  const std::map<std::string, const Op*>& rows() const { return rows_; }
  /// Adds a rule, whose op must be in the table. Throws Error where it is not.
  void add(Rule rule);
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::map<std::string, const Op*> rows_;
  std::vector<Rule> rules_;
};
const OpTable& builtin_ops();
/// The table of a tape: its own, or builtin_ops().
inline const OpTable& ops_of(const Tape& tape) { return tape.ops() != nullptr ? *tape.ops() : builtin_ops(); }

/// Every row as a page of Markdown: the ops reference.
void write_reference(const OpTable& table, std::ostream& out);

}  // namespace xtape
