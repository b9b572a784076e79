/// The tape: an append-only list of nodes, each of which applies one op to values of earlier nodes. Recording checks
/// shapes and dtypes at once and computes nothing; a Player computes the values.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
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

/// A value by index: an output of a node. Unlike a Var, it does not know its tape and is not checked.
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
  Attributes attributes;
  ValueIds inputs;
  SharedList<ValueType> outputs;     ///< The type of each output.
  Site site;
  bool fused = false;                ///< Recorded by `grad` or `scan`, which applied a rule.
  bool early = false;                ///< Recorded by `jvp`: played as soon as its inputs are known.
  std::shared_ptr<const Tape> body;  ///< For ops that repeat, recompute or fuse nodes (scan, checkpoint): these nodes.
  Array storage;                     ///< For constants and parameters: the array.
  std::string name;                  ///< For inputs and parameters.
  std::uint32_t serial = 0;          ///< Unique on its tape; a var with another serial is stale.
};

/// What the tape is for. dropout is recorded only in mode train; shift_right and, with a past, positions, causal_mask,
/// cache and scan differ in mode predict (docs/decoding.md).
enum class Mode : std::uint8_t { train, eval, predict };
const char* name_of(Mode mode);            ///< "train", "eval", "predict".
Mode mode_named(const std::string& name);  ///< The inverse; throws Error, which lists the valid names.

/// A var: a handle to one output of a node, cheap to copy. It does not keep its tape alive. It is stale if all Tape
/// handles and players of its tape are gone, or its node was removed: by a failed call, or into the body of a
/// checkpoint or scan. Using an empty or stale var throws HandleError.
class Var {
 public:
  Var() = default;
  bool empty() const {
    return serial_ == 0;
  }  ///< Whether it was made by Var(). (Unrelated to shapes; false for stale vars.)
  // A var has no truth value while recording, so `if (x > 0)`, `x > 0 ? a : b`, `!x` and `x && y` do not compile.
#if defined(__cpp_deleted_function)
  explicit operator bool() const = delete ("a var has no truth value: write where(c, a, b), ~x, x & y, or x.empty()");
#else
  explicit operator bool() const = delete;  // write where(c, a, b), ~x, x & y, or x.empty()
#endif
  // These throw HandleError, which names the caller, if the var is empty or stale. References are valid as long as the
  // node is on the tape; recording does not invalidate them.
  const Shape& shape(Caller caller = Caller::here()) const {
    return type(caller).shape;
  }
  Dtype dtype(Caller caller = Caller::here()) const {
    return type(caller).dtype;
  }
  const ValueType& type(Caller caller = Caller::here()) const;
  const Node& node(Caller caller = Caller::here()) const;
  ValueId id(Caller caller = Caller::here()) const;
  Tape tape(Caller caller = Caller::here()) const;  ///< A handle on the var's tape, which keeps it alive.
  std::size_t rank(Caller caller = Caller::here()) const {
    return type(caller).shape.size();
  }
  /// The size along `axis`; negative axes count from the back. Throws ShapeError if there is no such axis.
  std::int64_t size(std::int64_t axis, Caller caller = Caller::here()) const;

  /// The part that these indices choose, one for each axis in order; later axes stay whole. x.at(0), x.at(all, -1),
  /// x.at("...", Slice(1, 3)). Recorded as `slice` and `reshape`. Throws ShapeError for a place out of range and for more
  /// indices than axes.
  Var at(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {}, Caller caller = Caller::here()) const;
  Var at(std::initializer_list<Index> indices, Caller caller = Caller::here()) const;  ///< The same for any number.

 private:
  friend class Tape;
  struct TapeData* locked() const;
  struct TapeData* locked(const Caller& caller) const;
  std::weak_ptr<struct TapeData> tape_;
  ValueId id_;
  std::uint32_t serial_ = 0;
};
using Vars = std::vector<Var>;
template <>
inline constexpr const char* kind_of_value<Var> = "var";
/// Vars by name: inputs, results, weights.
using NamedVars = Named<Var>;

/// A carry: a state that a player keeps between plays. After a play, the value of `output` becomes the value of `input`
/// for the next play. `input` is an input of the tape; both have one type.
struct Carry {
  Var input;
  Var output;
  Array memory = {};  ///< The array that holds the state, of its type; empty: the player makes one, of zeros.
};

/// A var as the first argument of a function that records; the conversion from Var stores the caller's line. Your own
/// functions pass caller() on to `apply`.
class Argument : public Var {
 public:
  Argument(const Var& var, Caller caller = Caller::here()) : Var(var), caller_(caller) {}  // NOLINT: converts by intent
  const Caller& caller() const { return caller_; }

 private:
  Caller caller_;
};

/// An operand of an op: a var, or a literal that takes the dtype of the other operands; with the caller's line.
class Operand {
 public:
  Operand(const Argument& argument) : var_(argument), caller_(argument.caller()) {}        // NOLINT: converts by intent
  Operand(const Var& var, Caller caller = Caller::here()) : var_(var), caller_(caller) {}  // NOLINT: converts by intent
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Operand(T literal, Caller caller = Caller::here())
      : literal_(literal), caller_(caller) {}  // NOLINT: converts by intent
  /// The same operand; called from `caller` if its own caller is unknown.
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

/// A handle on an append-only list of nodes, which lives as long as one of its handles or players. Copying a handle
/// does not affect vars; there is no moving: a handle always has its list. While a thread records on a tape, no other
/// may use it; different tapes are independent.
class Tape {
 public:
  Tape();                    ///< In mode train.
  explicit Tape(Mode mode);  ///< The mode never changes.
  /// With another default dtype than float32. Throws as set_default_dtype does.
  explicit Tape(Dtype default_dtype, Mode mode = Mode::train);
  Tape(const Tape&) = default;
  Tape& operator=(const Tape&) = default;

  /// An input: a value that is fed at every play; without `dtype`, of the tape's default dtype. Throws Error if the
  /// tape has an input of that name, ShapeError if no array can have that shape.
  Var input(const std::string& name, const Shape& shape, std::optional<Dtype> dtype = std::nullopt,
            Caller caller = Caller::here());
  /// A parameter: an array that every play reads where it is, and never writes. The tape shares ownership. There is one
  /// node per array; for the same memory, the existing var is returned. Throws Error, with the nearest name, if `store`
  /// has no such array.
  Var parameter(const Store& store, const std::string& name, Caller caller = Caller::here());
  /// The same for an array of the caller's. Throws Error if `array` is empty.
  Var parameter(const std::string& name, const Array& array, Caller caller = Caller::here());
  /// The same for a copy of `initial`, which only the tape holds: Var::node().storage.
  Var parameter(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) {
    return parameter(name, Array(initial), caller);
  }
  /// A constant: a copy of `values`.
  Var constant(const ArrayView& values, Caller caller = Caller::here());
  /// A constant of rank 0. Without `dtype`, an integer becomes int64, a bool bool, another number the default dtype. Throws
  /// DtypeError if `dtype` is an integer or bool and cannot hold `value` exactly.
  Var constant(const Literal& value, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
  /// A constant of one axis: tape.constant({1, 0.5}). Without `dtype`, the same holds for all together.
  Var constant(std::initializer_list<Literal> values, std::optional<Dtype> dtype = std::nullopt,
               Caller caller = Caller::here());

  Mode mode() const;
  /// The dtype of floats that neither an operand nor an argument determines: of literals alone, of the division, `sqrt`
  /// or `mean` of integers, of `zeros` etc. Initially float32; setting it affects later calls only.
  Dtype default_dtype() const;
  void set_default_dtype(Dtype dtype);  ///< Throws DtypeError unless `dtype` is float32 or float64.
  /// The table whose rules `grad`, `scan` and players of this tape apply; null: builtin_ops(). It must outlive the tape
  /// and its players.
  const OpTable* ops() const;
  void set_ops(const OpTable& table);
  std::size_t size() const;  ///< Nodes.
  // These throw HandleError if there is no such node or value. For references see Var.
  const Node& node(std::size_t index) const;
  const ValueType& type(ValueId id) const;
  Var var(ValueId id) const;

  /// In mode predict: declares `tokens` [rows, …] to be the next piece of rows that began before: past[i] (int64
  /// [rows]) positions of row i precede it. Caches have room for `capacity` positions per row. Everything computed from
  /// `tokens` afterwards has this past; other values (an encoder's) have none. Throws Error in another mode, for a
  /// second past or capacity < 1, ShapeError if `past` has another type.
  void set_past(const Var& tokens, const Var& past, std::int64_t capacity);
  /// The past of x: the var given to set_past if x depends on its tokens; else empty. Takes time linear in the number
  /// of nodes that x depends on. Throws HandleError if x is of another tape.
  Var past_of(const Var& x) const;
  std::int64_t capacity() const;  ///< Positions per row of caches; 0 without a past.
  /// The states of the caches recorded so far, in this order. A player of the tape needs them as
  /// PlayerOptions::carries.
  std::vector<Carry> states() const;
  /// For ops that record caches. Throws HandleError for vars of another tape, Error if `input` is not an input.
  void add_state(const Var& input, const Var& output);

  /// Changes how nodes are recorded until it is destroyed. Guards must be destroyed in reverse order.
  class [[nodiscard]] Guard {
   public:
    Guard(Guard&&) = delete;
    ~Guard();

   private:
    friend class Tape;
    Guard(std::shared_ptr<struct TapeData> tape, Site site, bool site_is_fixed, bool fused);
    std::shared_ptr<struct TapeData> tape_;
    Site site_before_;
    bool fixed_before_;
    bool fused_before_;
  };
  /// Nodes recorded while the guard lives get sites on `line` of `scope`. If the scope has a `where`, errors give this
  /// location instead of the program's line. Throws Error if `scope` is null.
  Guard in_scope(std::shared_ptr<const Scope> scope, std::int32_t line);
  /// Nodes recorded while the guard lives get exactly this site: for nodes that replace the node of that site. A site
  /// without a scope gets an empty one.
  Guard in_site(const Site& site);

  /// Writes the tape to the folder `path`: the nodes to tape.json, the arrays of constants and parameters to
  /// arrays.safetensors (docs/tapes.md). `outputs` are the values that the file stands for. The same tape gives the
  /// same bytes. A saved tape at `path` is replaced; a crash leaves the old folder or the new one.
  ///
  /// Throws HandleError for vars of another tape, Error for ops that are not in the tape's table and for names that are
  /// not UTF-8, FileError if the folder cannot be written, or `path` is something else or has other files.
  void save(const std::string& path, const NamedVars& outputs = {}) const;
  /// Reads a saved tape. It plays the same bits as the saved one, and what is recorded on it later also gets the same
  /// sites. `weights` replace parameters, by the names in SavedTape::parameters: their arrays are shared, and those of
  /// the file are not read.
  ///
  /// `ops` are the ops that nodes may have; null: builtin_ops(). Throws FileError, which gives file and line, for
  /// anything that recording could not have made, and for weights that the tape does not have while it has
  /// parameters that they do not give.
  static SavedTape load(const std::string& path, const Store& weights = {}, const OpTable* ops = nullptr);
  void to_dot(std::ostream& out) const;  ///< A Graphviz digraph: a vertex for each node.

  /// Whether both are handles on the same list.
  friend bool operator==(const Tape& a, const Tape& b) { return a.data_ == b.data_; }
  friend bool operator!=(const Tape& a, const Tape& b) { return !(a == b); }

  // The rest is for gradients and passes.

  /// An empty tape with this tape's mode, default dtype and ops.
  Tape blank() const;

  /// Appends `node` and sets its serial and, unless it has one, its site. Throws Error without an op, for a wrong
  /// number of inputs and for a source that `input`, `parameter` or `constant` could not have recorded; HandleError
  /// unless its inputs are values of earlier nodes; ShapeError, which names the op and its operands, if no array can
  /// have an output type. The attributes, the dtypes of inputs and the output types must be as `apply` records them.
  ValueId append(Node node);
  /// Nodes recorded while the guard lives belong to a call of `op` (null: each to a call of its own op) from `caller`,
  /// unless an outer guard has assigned them to another call already.
  Guard in_call(const Op* op, const Caller& caller);
  /// Suspends in_call while the guard lives: each node belongs to its own call.
  Guard out_of_call();
  /// Nodes recorded while the guard lives are marked as `fused`.
  Guard in_fused_call();
  /// Removes the nodes from index `size` on, if any; their vars become stale.
  void truncate(std::size_t size);
  /// Moves the nodes from index `size` on into a body with these results, and returns it with the vars of this tape
  /// that its inputs stand for: the values of earlier nodes that the body uses. Sources stay on this tape; constants of
  /// rank 0 are copied. The vars of moved nodes become stale. Throws HandleError if the tape has fewer nodes, or for
  /// results of another tape; then nothing changes.
  std::pair<std::shared_ptr<const Tape>, Vars> enclose(std::size_t size, const Vars& results);
  /// The results of a body, and its input nodes in order.
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
  explicit Tape(std::shared_ptr<struct TapeData> data) : data_(std::move(data)) {}
  std::shared_ptr<struct TapeData> data_;
};

/// A tape from a file, and its vars by name.
struct SavedTape {
  Tape tape;
  NamedVars inputs;
  /// Named as their arrays in the file: a parameter whose name another one has too is "NAME#12", with the number of its
  /// node.
  NamedVars parameters;
  NamedVars outputs;  ///< Those that Tape::save was given.
};
/// Whether `path` is a folder that Tape::save wrote, judged by its names. Throws FileError if it cannot be accessed.
bool is_saved_tape(const std::string& path);

/// Records the nodes of `body` on `tape`, with `inputs` (one per input of the body) in place of its inputs, and returns
/// its results. The nodes keep their sites. Throws Error unless there are as many inputs, of the same types, and the
/// tapes differ; HandleError for inputs of another tape.
Vars inline_body(Tape tape, const Tape& body, const Vars& inputs);

/// Prints a readable line for each node: index, name, op, attributes, inputs, dtype, shape.
std::ostream& operator<<(std::ostream& out, const Tape& tape);

/// Records a call of `op` and returns its results: completes and checks the attributes, gives literals a dtype,
/// promotes operands, applies the shape rule, and appends the node.
///
/// Promotion converts operands to the largest of their dtypes: bool < int32 < int64 < float; mixing float32 and float64
/// is an error. A literal takes the dtype of the vars, but an integer makes bool int64, and a fraction makes integers
/// and bool the tape's default dtype, which is also used wherever a float is needed and no var is one.
///
/// `tape` is needed only if no operand is a var. Errors give the line of `caller` or, if unknown, of the first operand.
/// Throws DtypeError for dtypes and literals that do not fit, HandleError for empty or stale vars and vars of two
/// tapes, Error for a wrong number of operands or wrong attributes, and what the shape rule throws; then nothing stays
/// recorded.
Vars apply(const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {},
           Caller caller = Caller::here());
Vars apply(Tape tape, const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {},
           Caller caller = Caller::here());
/// The same for operands that are all vars, such as the inputs that a rule of an op gets.
template <class List, class = std::enable_if_t<std::is_same<std::decay_t<List>, Vars>::value>>
Vars apply(const Op& op, List&& operands, const Attributes& attributes = {}, Caller caller = Caller::here()) {
  std::vector<Operand> list;
  for (const Var& each : operands) list.emplace_back(each, caller);
  return apply(op, list, attributes, caller);
}

/// Calls `function` on `inputs` and encloses what it records as the body of one node, whose results it returns. Values
/// inside the body are not kept for the backward pass but computed again there, with the same random numbers (Chen et
/// al., 2016). Other vars that `function` uses become inputs of the node; other vars that it makes become stale. On a
/// tape with a past it is just function(inputs). Throws Error without a function, inputs or results, HandleError for
/// vars of another tape; then nothing stays recorded.
Vars checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape

template <>
struct std::hash<xtape::ValueId> {
  std::size_t operator()(xtape::ValueId id) const noexcept {
    return (static_cast<std::size_t>(static_cast<std::uint32_t>(id.node)) << 8) ^ static_cast<std::size_t>(id.output);
  }
};
