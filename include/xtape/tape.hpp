/// The tape: an append-only list of nodes, each of which applies one op to earlier nodes. Recording checks shapes and
/// dtypes there and then and computes nothing; numbers appear when a Player plays the tape.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 2
#error "this layer of xtape may not see the tape layer"
#endif

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/literal.hpp"
#include "xtape/shared_list.hpp"
#include "xtape/site.hpp"

namespace xtape {

struct Op;
class OpTable;
class Tape;

/// What is known of a value before it is computed.
struct ValueType {
  Dtype dtype = Dtype::float32;
  Shape shape;
};
bool operator==(const ValueType& a, const ValueType& b);
inline bool operator!=(const ValueType& a, const ValueType& b) {
  return !(a == b);
}
std::string to_string(const ValueType& type);  ///< "float32 (2, 3)".

/// One output of a node, by index.
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

template <>
inline constexpr const char* kind_of_value<std::int64_t> = "size";
/// Sizes by name: of einops patterns, of a model's inputs.
using NamedSizes = Named<std::int64_t>;

/// The value of an attribute.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, Dtype, NamedSizes>;
std::string to_string(const Attribute& value);
/// An integer or a double as an attribute.
Attribute attribute_of(const Literal& number);

/// A node's attributes, by name, in the order of the op's row.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items) : items_(items) {}

  void set(const std::string& name, Attribute value);
  const Attribute* find(const std::string& name) const;  ///< Null where there is none.
  /// The value, as T; throws Error where the name is absent or of another type.
  template <class T>
  const T& get(const std::string& name) const {
    const Attribute* value = find(name);
    if (value == nullptr || !std::holds_alternative<T>(*value)) missing(name);
    return std::get<T>(*value);
  }
  /// The value of an attribute of type `number` or `element`.
  Literal number(const std::string& name) const;
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_.get(); }
  friend bool operator==(const Attributes& a, const Attributes& b) { return a.items_ == b.items_; }

 private:
  [[noreturn]] void missing(const std::string& name) const;
  SharedList<std::pair<std::string, Attribute>> items_;
};

struct Node {
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<ValueId> inputs;
  SharedList<ValueType> outputs;
  Site site;
  bool fused = false;                ///< `grad` recorded it for a fused call, which stands for other nodes.
  std::shared_ptr<const Tape> body;  ///< For ops that repeat, recompute or fuse a stretch of tape.
  Array storage;                     ///< For constants and parameters: the array itself.
  std::string name;                  ///< For inputs and parameters.
  std::uint32_t serial = 0;          ///< Never used twice on one tape: what makes a stale handle known.
};

/// What the caller means to do. Ops such as dropout record themselves accordingly.
enum class Mode : std::uint8_t { train, eval, predict };
const char* name_of(Mode mode);
Mode mode_named(const std::string& name);  ///< Throws Error, naming the valid names.

/// A handle to one output of a node. Cheap to copy. Outliving its tape or its node makes it stale: using a stale or
/// empty handle throws HandleError.
class Var {
 public:
  Var() = default;
  bool empty() const {
    return serial_ == 0;
  }  ///< Whether nothing was ever recorded for it. (It says nothing of sizes.)
  // A var has no truth value while recording: `if (x > 0)`, `x > 0 ? a : b`, `!x`, `x && y` do not compile.
#if defined(__cpp_deleted_function)
  explicit operator bool() const = delete ("a var has no truth value: write where(c, a, b), ~x, x & y, or x.empty()");
#else
  explicit operator bool() const = delete;  // write where(c, a, b), ~x, x & y, or x.empty()
#endif
  const Shape& shape() const {
    return type().shape;
  }
  Dtype dtype() const {
    return type().dtype;
  }
  const ValueType& type() const;  ///< Valid until the tape grows.
  const Node& node() const;       ///< Valid until the tape grows.
  ValueId id() const;             ///< Checked: throws where the handle is stale.
  Tape tape() const;              ///< Another handle on the tape that this var is of.
  std::size_t rank() const {
    return shape().size();
  }
  /// The size along `axis` (negative counts from the back).
  std::int64_t size(std::int64_t axis) const {
    return shape()[normal_axis(axis, rank())];
  }

 private:
  friend class Tape;
  struct TapeData* locked() const;
  std::weak_ptr<struct TapeData> tape_;
  ValueId id_;
  std::uint32_t serial_ = 0;
};
using Vars = std::vector<Var>;

/// A state: after a play, the value of `output` becomes what `input` is at the next play. Both have one type.
struct Carry {
  Var input;
  Var output;
  Array memory = {};  ///< Where the state is held, of its type; empty: the player makes its own.
};

/// A var as the argument of a function: it notes the place of the call. Functions that record take their first var so.
class Argument : public Var {
 public:
  Argument(const Var& var, Caller caller = Caller::here()) : Var(var), caller_(caller) {}  // NOLINT: converts by intent
  const Caller& caller() const { return caller_; }

 private:
  Caller caller_;
};

/// A var, or a literal that takes the dtype of the vars beside it; and the place of the call that it is an operand of.
class Operand {
 public:
  Operand(const Argument& argument) : var_(argument), caller_(argument.caller()) {}        // NOLINT: converts by intent
  Operand(const Var& var, Caller caller = Caller::here()) : var_(var), caller_(caller) {}  // NOLINT: converts by intent
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Operand(T literal, Caller caller = Caller::here())
      : literal_(literal), caller_(caller) {}  // NOLINT: converts by intent
  /// The same operand, of a call from `caller` where its own is not known.
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

/// A handle on an append-only list of nodes. Moving or copying the handle does nothing to its vars: they belong to the
/// list, which lives as long as some handle to it does. Not for use by two threads at once; two tapes do not meet.
class Tape {
 public:
  Tape();
  explicit Tape(Mode mode);

  /// A value fed at every play, of the default dtype where none is given. Throws Error where an input of that name
  /// exists, ShapeError where no array can have that shape.
  Var input(const std::string& name, const Shape& shape, std::optional<Dtype> dtype = std::nullopt,
            Caller caller = Caller::here());
  /// An array of `store`, read at every play (and written by nobody but its owner). One node per array.
  Var parameter(const Store& store, const std::string& name, Caller caller = Caller::here());
  /// The same, for an array held by the caller.
  Var parameter(const std::string& name, const Array& array, Caller caller = Caller::here());
  Var parameter(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) {
    return parameter(name, Array(initial), caller);
  }
  /// A fixed array (copied).
  Var constant(const ArrayView& values, Caller caller = Caller::here());
  /// Of rank 0. Throws DtypeError where `value` goes into an integer dtype or bool and is not one of its numbers.
  Var constant(const Literal& value, Dtype dtype, Caller caller = Caller::here());

  Mode mode() const;
  /// The dtype of floats that nothing else says: of literals alone, of what division and functions such as `sqrt` and
  /// `mean` make of integers, of `zeros` and its like. float32 at first. What is recorded stays as it is.
  Dtype default_dtype() const;
  void set_default_dtype(Dtype dtype);  ///< Throws DtypeError unless `dtype` is float32 or float64.
  /// The table whose rules `grad`, `scan` and players of this tape apply; null: builtin_ops(). It must outlive the
  /// tape.
  const OpTable* ops() const;
  void set_ops(const OpTable& table);
  std::size_t size() const;
  const Node& node(std::size_t index) const;
  const ValueType& type(ValueId id) const;
  Var var(ValueId id) const;

  /// In mode predict: from here on `tokens` is a piece of rows that began before. Row i has past[i] positions (int64
  /// [rows]) behind it, and what is cached of a row has room for `capacity` of them. Whatever is computed from `tokens`
  /// has this past; all else (an encoder's side) has none. Throws Error in another mode, or where there is a past
  /// already.
  void set_past(const Var& tokens, const Var& past, std::int64_t capacity);
  Var past_of(const Var& x) const;  ///< The past of what `x` is computed from; empty where it has none.
  std::int64_t capacity() const;    ///< Of what is cached; 0 where nothing has a past.
  /// What was recorded of caches: the states that a player of this tape has to carry, in the order of recording.
  std::vector<Carry> states() const;
  void add_state(const Var& input, const Var& output);

  /// While it lives, nodes are recorded as standing elsewhere; then as before.
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
  /// Nodes recorded while the guard lives stand on `line` of `scope`. Where it says `where`, that is their place, and
  /// not the program's line.
  Guard in_scope(std::shared_ptr<const Scope> scope, std::int32_t line);
  /// Nodes recorded while the guard lives have exactly this site: for those that stand in for the node of that site.
  Guard in_site(const Site& site);

  void to_json(std::ostream& out) const;  ///< {"nodes": [{"op", "name", "attributes", "inputs", "outputs", …}]}.
  void to_dot(std::ostream& out) const;   ///< A Graphviz digraph.

  friend bool operator==(const Tape& a, const Tape& b) { return a.data_ == b.data_; }
  friend bool operator!=(const Tape& a, const Tape& b) { return !(a == b); }

  // The rest serves gradients and passes.

  /// A tape without nodes, of this one's mode, default dtype and ops.
  Tape blank() const;

  /// Appends `node` as it stands, unchecked but for its inputs' indices and for its outputs, which must be types that
  /// arrays can have: throws ShapeError, with the op and its operands, where checked_bytes does. Its serial is set
  /// here.
  ValueId append(Node node);
  /// Nodes recorded while the guard lives belong to a call of `op` (null: of each node's own) from `caller`, unless
  /// they belong to a call further out.
  Guard in_call(const Op* op, const Caller& caller);
  /// Nodes recorded while the guard lives belong to calls of their own.
  Guard out_of_call();
  /// Nodes recorded while the guard lives are marked as `fused`.
  Guard in_fused_call();
  /// Drops the nodes from `size` on; their handles become stale.
  void truncate(std::size_t size);
  /// Takes the nodes from `size` on, which `results` need, off this tape and into a body. What they use of the nodes
  /// before becomes an input of the body, and is returned with it; sources among them stay on this tape.
  std::pair<std::shared_ptr<const Tape>, Vars> enclose(std::size_t size, const Vars& results);
  /// What a body gives, and what it takes: its input nodes in order.
  const std::vector<ValueId>& results() const;
  void set_results(std::vector<ValueId> results);
  std::vector<ValueId> inputs() const;

 private:
  friend class Var;
  explicit Tape(std::shared_ptr<struct TapeData> data) : data_(std::move(data)) {}
  std::shared_ptr<struct TapeData> data_;
};

/// Records the nodes of `body` on `tape`, with `inputs` for its inputs; returns its results. Sites are kept.
Vars inline_body(Tape tape, const Tape& body, const Vars& inputs);

/// One readable line a node: index, name, op, attributes, inputs, dtype, shape.
std::ostream& operator<<(std::ostream& out, const Tape& tape);

/// Records the call of `op`: completes and checks the attributes, gives literals their dtype, promotes mixed operands
/// (bool < int32 < int64 < float; two float widths are an error; a float that no var says has the tape's default
/// dtype), applies the shape rule, and appends the node. Throws without a trace on the tape. `tape` is needed only
/// where no operand is a var. The call stands at `caller` or, in the library's own functions, at its first operand's.
Vars apply(const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {},
           Caller caller = Caller::here());
Vars apply(Tape tape, const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {},
           Caller caller = Caller::here());

/// Records what `function` records on `inputs`, then encloses it as the body of one node whose interior values are not
/// kept for the backward pass but computed again there, with the same random numbers. What `function` uses besides its
/// inputs (parameters, other vars) becomes an input of the node too.
Vars checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape
