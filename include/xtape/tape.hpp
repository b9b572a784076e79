/// The tape: an append-only list of nodes. Each node applies an op to values of earlier nodes. Recording checks shapes
/// and dtypes immediately and computes nothing. A Player computes the values.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/attributes.hpp"
#include "xtape/index.hpp"
#include "xtape/literal.hpp"
#include "xtape/shared_list.hpp"
#include "xtape/site.hpp"
#include "xtape/small_vector.hpp"

namespace xtape {

struct Op;
class OpTable;
class Tape;
struct SavedTape;
struct TapeData;
struct TapePlace;

/// An output of a node, identified by indices. Unlike a Var, a ValueId does not know its tape and is not checked.
struct ValueId {
  std::int32_t node = -1;
  std::int32_t output = 0;
};
inline bool operator==(ValueId a, ValueId b) {
  return a.node == b.node && a.output == b.output;
}
inline bool operator!=(ValueId a, ValueId b) {
  return !(a == b);
}
/// The order of recording.
inline bool operator<(ValueId a, ValueId b) {
  return a.node != b.node ? a.node < b.node : a.output < b.output;
}
/// The inputs of a node. Few nodes have more than three.
using ValueIds = SmallVector<ValueId, 3>;

/// A node of a tape.
struct Node {
  const Op* op = nullptr;
  ValueIds inputs;
  SharedList<ValueType> outputs;  ///< The type of each output.
  Attributes attributes;
  Site site;
  bool fused = false;        ///< Whether `grad` or `scan` recorded the node for a fusion rule.
  bool early = false;        ///< Whether `jvp` recorded the node. Players run it as soon as its inputs are available.
  std::uint32_t serial = 0;  ///< Unique on its tape. A var with a different serial is stale.
  /// The enclosed nodes of an op that repeats, recomputes or fuses nodes (scan, checkpoint).
  std::shared_ptr<const Tape> body;
  Array storage;     ///< The array of a constant or parameter.
  std::string name;  ///< The name of an input or parameter.
};

/// The purpose of the tape. Only mode train records dropout. In mode predict, shift_right returns its input. If there
/// is a past, positions, causal_mask, cache and scan behave differently, too (docs/how_to/decoding.md).
enum class Mode : std::uint8_t { train, eval, predict };
const char* name_of(Mode mode);            ///< "train", "eval", "predict".
Mode mode_named(const std::string& name);  ///< The inverse of name_of. Throws Error with a list of the valid names.

/// A var: a handle to one output of a node, cheap to copy. A var does not keep its tape alive. It is stale if all Tape
/// handles and players of its tape are gone, or if its node is no longer on the tape. (A failed call removes its nodes.
/// A checkpoint or scan moves nodes into its body.) Using an empty or stale var throws HandleError.
class Var {
 public:
  Var() = default;
  bool empty() const {
    return serial_ == 0;
  }  ///< Whether the default constructor made this var. Unrelated to shapes. False for stale vars.
  // A var has no truth value during recording, so `if (x > 0)`, `x > 0 ? a : b`, `!x` and `x && y` do not compile.
#if defined(__cpp_deleted_function)
  explicit operator bool() const = delete ("a var has no truth value: write where(c, a, b), ~x, x & y, or x.empty()");
#else
  explicit operator bool() const = delete;  // write where(c, a, b), ~x, x & y, or x.empty()
#endif
  // These functions throw HandleError with the source line of the call if the var is empty or stale. References are
  // valid as long as the node is on the tape. Recording does not invalidate them.
  const Shape& shape(Caller caller = Caller::here()) const {
    return type(caller).shape;
  }
  Dtype dtype(Caller caller = Caller::here()) const {
    return type(caller).dtype;
  }
  const ValueType& type(Caller caller = Caller::here()) const;
  const Node& node(Caller caller = Caller::here()) const;
  ValueId id(Caller caller = Caller::here()) const;
  /// A handle on the tape of the var. The handle keeps the tape alive.
  Tape tape(Caller caller = Caller::here()) const;
  std::size_t rank(Caller caller = Caller::here()) const {
    return type(caller).shape.size();
  }
  /// The size along `axis`; negative axes count from the back. Throws ShapeError if there is no such axis.
  std::int64_t size(std::int64_t axis, Caller caller = Caller::here()) const;

  /// Indexes the var, with one index per axis in order: x.at(0), x.at(all, -1), x.at("...", Slice(1, 3)). Axes without
  /// an index stay whole. Recorded as `slice` and `reshape`. Throws ShapeError if an index is out of range or there are
  /// more indices than axes.
  Var at(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {},
         Caller caller = Caller::here()) const;
  /// The same for any number of indices.
  Var at(std::initializer_list<Index> indices, Caller caller = Caller::here()) const;

 private:
  friend class Tape;
  TapeData& data() const;
  TapeData& data(const Caller& caller) const;
  // Plain data, so that vars and lists of vars need no code to copy or destroy them.
  TapePlace* place_ = nullptr;
  std::uint32_t tape_ = 0;  // the number that the place of the tape had
  std::uint32_t serial_ = 0;
  ValueId id_;
};
static_assert(std::is_trivially_copyable<Var>::value, "a var is plain data");
using Vars = std::vector<Var>;
template <>
inline constexpr const char* kind_of_value<Var> = "var";
/// Vars by name: inputs, results, weights.
using NamedVars = Named<Var>;

/// A carry: a state that a player keeps between plays. After a play, the value of `output` becomes the value of `input`
/// for the next play. `input` is an input of the tape. `input` and `output` have the same type.
struct Carry {
  Var input;
  Var output;
  Array memory = {};  ///< The array that holds the state. If empty, the player makes an array of zeros.
};

/// A var as the first argument of a recording function. The conversion from Var stores the caller's line. Custom
/// functions pass caller() on to `apply`.
class Argument : public Var {
 public:
  Argument(const Var& var, Caller caller = Caller::here()) : Var(var), caller_(caller) {}  // NOLINT: converts by intent
  const Caller& caller() const { return caller_; }

 private:
  Caller caller_;
};

/// An operand of an op: a var or a literal, with the caller's line. A literal takes the dtype of the other operands.
class Operand {
 public:
  Operand(const Argument& argument) : var_(argument), caller_(argument.caller()) {}        // NOLINT: converts by intent
  Operand(const Var& var, Caller caller = Caller::here()) : var_(var), caller_(caller) {}  // NOLINT: converts by intent
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Operand(T literal, Caller caller = Caller::here())
      : literal_(literal), caller_(caller) {}  // NOLINT: converts by intent
  /// The same operand. If its caller is unknown, the caller becomes `caller`.
  Operand(const Operand& other, const Caller& caller) : Operand(other) {
    if (!caller_.known()) caller_ = caller;
  }
  bool is_literal() const { return literal_.has_value(); }
  const Literal& literal() const { return literal_.value(); }
  const Var& var() const { return var_; }
  const Caller& caller() const { return caller_; }

 private:
  Var var_;
  std::optional<Literal> literal_;
  Caller caller_;
};

/// A handle on an append-only list of nodes. The list lives as long as one of its handles or players. Copying a handle
/// does not affect vars. A move is a copy, so that a handle always has a list. While a thread records on a tape, no
/// other thread may use it. Different tapes are independent.
class Tape {
 public:
  Tape();                    ///< A tape in mode train.
  explicit Tape(Mode mode);  ///< A tape in `mode`, which never changes.
  /// A tape with another default dtype than float32. Errors are those of set_default_dtype.
  explicit Tape(Dtype default_dtype, Mode mode = Mode::train);
  Tape(const Tape&) = default;
  Tape& operator=(const Tape&) = default;

  /// Records an input, which receives a value at every play. Without `dtype`, it has the tape's default dtype. Throws
  /// Error if the tape already has an input of this name, ShapeError if no array can have this shape.
  Var input(const std::string& name, const Shape& shape, std::optional<Dtype> dtype = std::nullopt,
            Caller caller = Caller::here());
  /// Records a parameter: an array that every play reads in place and never writes. The tape shares ownership. There is
  /// one node per array. If the tape already has a parameter with the same memory, returns the existing var. Throws
  /// Error with the nearest name if `store` has no such array.
  Var parameter(const Store& store, const std::string& name, Caller caller = Caller::here());
  /// The same for a given array. Throws Error if `array` is empty.
  Var parameter(const std::string& name, const Array& array, Caller caller = Caller::here());
  /// The same for a copy of `initial`. Only the tape holds the copy, in Var::node().storage.
  Var parameter(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) {
    return parameter(name, Array(initial), caller);
  }
  /// Records a constant, a copy of `values`.
  Var constant(const ArrayView& values, Caller caller = Caller::here());
  /// Records a constant of rank 0. Without `dtype`, an integer becomes int64, a bool becomes bool, and any other number
  /// gets the default dtype. Throws DtypeError if `dtype` is an integer or bool and cannot hold `value` exactly.
  Var constant(const Literal& value, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
  /// Records a constant vector: tape.constant({1, 0.5}). Without `dtype`, the same rule determines one dtype for all
  /// values.
  Var constant(std::initializer_list<Literal> values, std::optional<Dtype> dtype = std::nullopt,
               Caller caller = Caller::here());

  Mode mode() const;
  /// The dtype of a float result if neither an operand nor an argument determines it. Examples are ops on literals
  /// alone, the division, `sqrt` and `mean` of integers, and `zeros`. Initially float32. Setting it affects only later
  /// calls.
  Dtype default_dtype() const;
  void set_default_dtype(Dtype dtype);  ///< Throws DtypeError if `dtype` is neither float32 nor float64.
  /// The table whose rules `grad`, `scan` and players of this tape apply. Null means builtin_ops(). The table must
  /// outlive the tape and its players.
  const OpTable* ops() const;
  void set_ops(const OpTable& table);  ///< The table must contain all ops of the tape, if the tape is to be saved.
  std::size_t size() const;            ///< The number of nodes.
  // These functions throw HandleError if there is no such node or value. References are valid as long as the node is on
  // the tape.
  const Node& node(std::size_t index) const;
  const ValueType& type(ValueId id) const;
  Var var(ValueId id) const;

  /// In mode predict, declares that `tokens` [rows, …] continue rows that began earlier. `past` is int64 [rows]: in row
  /// i, past[i] positions precede the tokens. Caches have space for `capacity` positions per row. All values computed
  /// from `tokens` afterwards have this past. Other values, such as those of an encoder, have no past. If `caches` is
  /// q8_0, caches of float32 values whose last axis is whole blocks round them to 8 bits. Throws Error in another mode,
  /// if there is already a past, or if capacity < 1. Throws ShapeError if `past` has another type. Throws DtypeError if
  /// `caches` is neither float32 nor q8_0.
  void set_past(const Var& tokens, const Var& past, std::int64_t capacity, Dtype caches = Dtype::float32);
  /// Returns the past of x. If x depends on the `tokens` of set_past, this is the var `past` of set_past. Otherwise, it
  /// is an empty var. Takes time linear in the number of nodes that x depends on. Throws HandleError if x belongs to
  /// another tape.
  Var past_of(const Var& x) const;
  std::int64_t capacity() const;  ///< The number of positions per row of the caches. 0 if the tape has no past.
  Dtype caches() const;           ///< The dtype in which caches store float32 values: see set_past.
  /// The states of the caches recorded so far, in the order of recording. A player of the tape needs them as
  /// PlayerOptions::carries.
  std::vector<Carry> states() const;
  /// Adds a state. Ops that record caches call this function. Throws HandleError if a var belongs to another tape,
  /// Error if `input` is not an input.
  void add_state(const Var& input, const Var& output);

  /// Changes how nodes are recorded during the lifetime of the guard. Guards must be destroyed in reverse order.
  class [[nodiscard]] Guard {
   public:
    Guard(Guard&&) = delete;
    ~Guard();

   private:
    friend class Tape;
    Guard(std::shared_ptr<TapeData> tape, Site site, bool site_is_fixed, bool fused);
    std::shared_ptr<TapeData> tape_;
    Site site_before_;
    bool fixed_before_;
    bool fused_before_;
  };
  /// Nodes recorded during the lifetime of the guard get sites on `line` of `scope`. If the scope has a `where`, errors
  /// give this location instead of the program's line. Throws Error if `scope` is null.
  Guard in_scope(std::shared_ptr<const Scope> scope, std::int32_t line);
  /// Nodes recorded during the lifetime of the guard get exactly this site. Use it for nodes that replace the node of
  /// this site. A site without a scope gets an empty scope.
  Guard in_site(const Site& site);

  /// Writes the tape to the folder `path` (docs/reference/tapes.md). tape.json contains the nodes, arrays.safetensors
  /// the arrays of constants and parameters. `outputs` are the named results of the saved tape. The same tape always
  /// gives the same bytes. Replaces a saved tape at `path`. After a crash, the folder is either the complete old tape
  /// or the complete new tape.
  ///
  /// Throws HandleError if a var belongs to another tape. Throws Error if an op is not in the tape's table or a name is
  /// not UTF-8. Throws FileError if the folder cannot be written, `path` is not a saved tape, or the folder has other
  /// files.
  void save(const std::string& path, const NamedVars& outputs = {}) const;
  /// Reads a saved tape. The results of its plays are bitwise those of the original tape. Later recordings get the same
  /// sites as on the original tape. An array of `weights` replaces the parameter with the same name in
  /// SavedTape::parameters. The tape then shares the arrays of `weights` and does not read those of the file.
  ///
  /// `ops` is the table of the ops that nodes may have. Null means builtin_ops(). Throws FileError with file and line
  /// if recording could not have made the contents. Throws FileError if `weights` both has an array that the tape lacks
  /// and lacks a parameter that the tape has.
  static SavedTape load(const std::string& path, const Store& weights = {}, const OpTable* ops = nullptr);
  void to_dot(std::ostream& out) const;  ///< Writes a Graphviz digraph with one vertex per node.

  /// Whether both are handles on the same list.
  friend bool operator==(const Tape& a, const Tape& b) { return a.data_ == b.data_; }
  friend bool operator!=(const Tape& a, const Tape& b) { return !(a == b); }

  // Functions for gradients and passes follow.

  /// An empty tape with this tape's mode, default dtype and ops.
  Tape blank() const;

  /// Appends `node` and sets its serial. Sets its site if it has none. Throws Error if the node has no op, has the
  /// wrong number of inputs, or is a source that `input`, `parameter` or `constant` could not have recorded. Throws
  /// HandleError if an input is not a value of an earlier node. Throws ShapeError with the op and its operands if no
  /// array can have an output type. The caller ensures that attributes, input dtypes and output types are as `apply`
  /// records them.
  ValueId append(Node node);
  /// Nodes recorded during the lifetime of the guard belong to a call of `op` from `caller`. If `op` is null, each node
  /// belongs to a call of its own op. An outer guard that already assigns nodes to a call takes precedence.
  Guard in_call(const Op* op, const Caller& caller);
  /// Suspends in_call during the lifetime of the guard. Each node then belongs to its own call.
  Guard out_of_call();
  /// Nodes recorded during the lifetime of the guard are marked as `fused`.
  Guard in_fused_call();
  /// Removes all nodes from index `size` on. Their vars become stale.
  void truncate(std::size_t size);
  /// Moves the nodes from index `size` on into a body with these results. The inputs of the body are the values of
  /// earlier nodes that the body uses. Returns the body, and for each of its inputs the corresponding var of this tape.
  /// Sources stay on this tape, except constants of rank 0. Vars of moved nodes become stale. Throws HandleError if the
  /// tape has fewer nodes or a result belongs to another tape. After an error, nothing changes.
  std::pair<std::shared_ptr<const Tape>, Vars> enclose(std::size_t size, const Vars& results);
  /// The results of a body.
  const std::vector<ValueId>& results() const;
  /// Throws HandleError if there is no such value.
  void set_results(std::vector<ValueId> results);
  std::vector<ValueId> inputs() const;

 private:
  friend class Var;
  friend class TapeWriter;
  friend class TapeReader;
  friend class Copier;
  friend Node& editable(const Tape& tape, std::int32_t index);
  explicit Tape(std::shared_ptr<TapeData> data) : data_(std::move(data)) {}
  std::shared_ptr<TapeData> data_;
};

/// A tape from a file, with its named vars.
struct SavedTape {
  Tape tape;
  NamedVars inputs;
  /// The parameters, under the names of their arrays in the file. A parameter that shares its name with another one is
  /// "NAME#12", with the number of its node.
  NamedVars parameters;
  NamedVars outputs;  ///< The outputs given to Tape::save.
};
/// Whether `path` is a folder written by Tape::save. Checks only that the file tape.json exists. Throws FileError if
/// `path` cannot be accessed.
bool is_saved_tape(const std::string& path);

/// Records the nodes of `body` on `tape` and returns its results. `inputs` replace the inputs of the body. The nodes
/// keep their sites. Throws Error if the number or the types of the inputs differ from those of the body, or if both
/// tapes are the same. Throws HandleError if an input belongs to another tape.
Vars inline_body(Tape tape, const Tape& body, const Vars& inputs);

/// Prints a readable line for each node: index, name, op, attributes, inputs, dtype and shape.
std::ostream& operator<<(std::ostream& out, const Tape& tape);

/// Records a call of `op` and returns its results. Completes and checks the attributes, determines the dtypes of
/// literals, promotes operands, applies the shape rule, and appends the node.
///
/// Promotion converts operands to the largest of their dtypes: bool < int32 < int64 < float. Mixing float32 and float64
/// is an error. A literal takes the dtype of the vars, with two exceptions: an integer literal promotes bool to int64,
/// and a fractional literal promotes integers and bool to the tape's default dtype. An op that needs a float also uses
/// the default dtype if no var is a float.
///
/// `tape` is needed only if no operand is a var. Errors give the line of `caller` or, if unknown, of the first operand.
/// Throws DtypeError if a dtype or literal does not fit, HandleError if a var is empty or stale or the vars belong to
/// several tapes, Error if the number of operands or an attribute is wrong. Errors of the shape rule propagate. After
/// an error, nothing stays recorded.
Vars apply(const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {},
           Caller caller = Caller::here());
Vars apply(Tape tape, const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {},
           Caller caller = Caller::here());
/// The same for operands in a vector of Vars or Operands, such as the inputs of an op's rule. A template, because a
/// vector brings std::apply into the overload resolution, which would otherwise match better.
template <class AnyOp, class List,
          class = std::enable_if_t<std::is_same<std::remove_const_t<AnyOp>, Op>::value &&
                                   (std::is_same<std::decay_t<List>, Vars>::value ||
                                    std::is_same<std::decay_t<List>, std::vector<Operand>>::value)>>
Vars apply(AnyOp& op, List&& operands, const Attributes& attributes = {}, Caller caller = Caller::here()) {
  std::vector<Operand> list;
  list.reserve(operands.size());
  for (const auto& each : operands) list.emplace_back(each, caller);
  const Op& called = op;
  return apply(called, static_cast<const std::vector<Operand>&>(list), attributes, caller);
}

/// Calls `function` on `inputs` and encloses the recorded nodes as the body of one node. Returns the results of this
/// node. The backward pass does not keep the values inside the body. It recomputes them with the same random numbers
/// (Chen et al., 2016). Other vars that `function` uses become inputs of the node. All other vars that `function`
/// records become stale. On a tape with a past, checkpoint only calls function(inputs). Throws Error if `function` is
/// empty or there are no inputs or results. Throws HandleError if a var belongs to another tape. After an error,
/// nothing stays recorded.
Vars checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape

template <>
struct std::hash<xtape::ValueId> {
  std::size_t operator()(xtape::ValueId id) const noexcept {
    return (static_cast<std::size_t>(static_cast<std::uint32_t>(id.node)) << 8) ^ static_cast<std::size_t>(id.output);
  }
};
