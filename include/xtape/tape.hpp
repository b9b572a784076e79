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

namespace xtape {

struct Op;
class Tape;

/// What is known of a value before it is computed.
struct ValueType {
  Dtype dtype = Dtype::float32;
  Shape shape;
};
bool operator==(const ValueType& a, const ValueType& b);
inline bool operator!=(const ValueType& a, const ValueType& b) { return !(a == b); }
std::string to_string(const ValueType& type);  ///< "float32 (2, 3)".

/// One output of a node, by index.
struct ValueId {
  std::int32_t node = -1;
  std::int32_t output = 0;
};
inline bool operator==(ValueId a, ValueId b) { return a.node == b.node && a.output == b.output; }
inline bool operator!=(ValueId a, ValueId b) { return !(a == b); }

/// Sizes by name, for einops patterns.
using NamedSizes = std::vector<std::pair<std::string, std::int64_t>>;

/// The value of an attribute.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, Dtype, NamedSizes>;
std::string to_string(const Attribute& value);

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
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }
  friend bool operator==(const Attributes& a, const Attributes& b) { return a.items_ == b.items_; }

 private:
  [[noreturn]] void missing(const std::string& name) const;
  std::vector<std::pair<std::string, Attribute>> items_;
};

/// A part of a model, or a stretch of a program, in which nodes are recorded.
struct Scope {
  std::string path;   ///< The part's path: "h.0.attn". Empty outside definitions.
  std::string where;  ///< For errors: "gpt2.json, block 'attention'". Empty outside definitions.
};

/// Where a call stands. Fixed at recording, copied to the gradient nodes and by every pass: it keys errors, profiles,
/// random numbers and caches. The same call in a tape of another batch shape has the same site.
struct Site {
  std::shared_ptr<const Scope> scope;  ///< Never null in a recorded node.
  std::int32_t line = 0;               ///< The line in the definition's file; 0 outside definitions.
  std::int32_t occurrence = 0;         ///< Counts the calls of one op on one line of one part.
  std::uint64_t key = 0;               ///< A hash of path, line, op and occurrence.
};
std::string to_string(const Site& site);  ///< "h.0.attn (gpt2.json, block 'attention', line 24)"; "" if nothing is known.

/// Set where `grad` made a node: in which sweep, for which forward node.
struct Provenance {
  std::int32_t sweep = -1;    ///< Counts the calls of `grad` on the tape; -1 for nodes that `grad` did not make.
  std::int32_t forward = -1;  ///< The forward node whose gradient rule recorded this one; -1 for sums of contributions.
};

/// What a sweep notes of a forward node, so that a pass can take the node's backward part as a whole.
struct Adjoint {
  std::int32_t sweep = -1;
  std::int32_t forward = -1;
  bool of_output = false;  ///< True: `value` is the cotangent of output `index`. False: what flows on to input `index`.
  std::int32_t index = 0;
  ValueId value;
};

struct Node {
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueType> outputs;
  Site site;
  Provenance of;
  std::shared_ptr<const Tape> body;  ///< For ops that repeat, recompute or fuse a stretch of tape.
  Array storage;                     ///< For constants and parameters: the array itself.
  std::string name;                  ///< For inputs and parameters.
  std::uint32_t serial = 0;          ///< Never used twice on one tape: what makes a stale handle known.
};

/// What the caller means to do. Ops such as dropout record themselves accordingly.
enum class Mode : std::uint8_t { train, eval, predict };
const char* name_of(Mode mode);
Mode mode_named(const std::string& name);  ///< Throws Error, naming the valid names.

/// A handle to one output of a node. Cheap to copy. Outliving its tape or its node makes it stale: using a stale or empty
/// handle throws HandleError.
class Var {
 public:
  Var() = default;
  explicit operator bool() const { return serial_ != 0; }  ///< False for an empty handle.
  const Shape& shape() const { return type().shape; }
  Dtype dtype() const { return type().dtype; }
  const ValueType& type() const;  ///< Valid until the tape grows.
  const Node& node() const;       ///< Valid until the tape grows.
  ValueId id() const;             ///< Checked: throws where the handle is stale.
  Tape tape() const;              ///< Another handle on the tape that this var is of.
  std::size_t rank() const { return shape().size(); }
  /// The size along `axis` (negative counts from the back).
  std::int64_t size(std::int64_t axis) const { return shape()[normal_axis(axis, rank())]; }

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

/// A var, or a number literal that takes the dtype of the vars beside it.
class Operand {
 public:
  Operand(const Var& var) : var_(var) {}                                          // NOLINT: converts by intent
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Operand(T literal) : literal_(static_cast<double>(literal)), is_literal_(true),  // NOLINT: converts by intent
                       is_whole_(std::is_integral<T>::value) {}
  bool is_literal() const { return is_literal_; }
  bool is_whole() const { return is_whole_; }  ///< An integer or bool literal.
  double literal() const { return literal_; }
  const Var& var() const { return var_; }

 private:
  Var var_;
  double literal_ = 0;
  bool is_literal_ = false;
  bool is_whole_ = false;
};

/// A handle on an append-only list of nodes. Moving or copying the handle does nothing to its vars: they belong to the
/// list, which lives as long as some handle to it does. Not for use by two threads at once; two tapes do not meet.
class Tape {
 public:
  Tape();
  explicit Tape(Mode mode);

  /// A value fed at every play. Throws Error where an input of that name exists, ShapeError where no array can have that
  /// shape.
  Var input(const std::string& name, const Shape& shape, Dtype dtype = Dtype::float32);
  /// An array of `store`, read at every play (and written by nobody but its owner). One node per array.
  Var parameter(const Store& store, const std::string& name);
  Var parameter(const std::string& name, const Array& array);  ///< The same, for an array held by the caller.
  Var parameter(const std::string& name, const ArrayView& initial) { return parameter(name, Array(initial)); }
  /// A fixed array (copied).
  Var constant(const ArrayView& values);
  Var constant(double value, Dtype dtype);  ///< Of rank 0.

  Mode mode() const;
  std::size_t size() const;
  const Node& node(std::size_t index) const;
  const ValueType& type(ValueId id) const;
  Var var(ValueId id) const;
  const std::vector<Adjoint>& adjoints() const;

  /// In mode predict: from here on `tokens` is a piece of rows that began before. Row i has past[i] positions (int64 [rows])
  /// behind it, and what is cached of a row has room for `capacity` of them. Whatever is computed from `tokens` has this
  /// past; all else (an encoder's side) has none. Throws Error in another mode, or where there is a past already.
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
    Guard(std::shared_ptr<struct TapeData> tape, Site site, bool site_is_fixed, Provenance of);
    std::shared_ptr<struct TapeData> tape_;
    Site site_before_;
    bool fixed_before_;
    Provenance of_before_;
  };
  /// Nodes recorded while the guard lives stand on `line` of `scope`.
  Guard in_scope(std::shared_ptr<const Scope> scope, std::int32_t line);
  /// Nodes recorded while the guard lives have exactly this site: for those that stand in for the node of that site.
  Guard in_site(const Site& site);

  void to_json(std::ostream& out) const;  ///< {"nodes": [{"op", "name", "attributes", "inputs", "outputs", …}]}.
  void to_dot(std::ostream& out) const;   ///< A Graphviz digraph.

  friend bool operator==(const Tape& a, const Tape& b) { return a.data_ == b.data_; }
  friend bool operator!=(const Tape& a, const Tape& b) { return !(a == b); }

  // The rest serves gradients and passes.

  /// Appends `node` as it stands, unchecked but for its inputs' indices and for its outputs, which must be types that
  /// arrays can have: throws ShapeError, with the op and its operands, where checked_bytes does. Its serial is set here.
  ValueId append(Node node);
  void add_adjoint(const Adjoint& adjoint);
  std::int32_t new_sweep();
  /// Nodes recorded while the guard lives have this provenance, and the site of node `of.forward` (where there is one).
  Guard in_sweep(Provenance of);
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
/// (bool < int32 < int64 < float; two float widths are an error), applies the shape rule, and appends the node. Throws
/// without a trace on the tape. `tape` is needed only where no operand is a var.
Vars apply(const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {});
Vars apply(Tape tape, const Op& op, const std::vector<Operand>& operands, const Attributes& attributes = {});

/// Records what `function` records on `inputs`, then encloses it as the body of one node whose interior values are not
/// kept for the backward part but computed again there, with the same random numbers. What `function` uses besides its
/// inputs (parameters, other vars) becomes an input of the node too.
Vars checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs);

}  // namespace xtape
