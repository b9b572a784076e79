/// What most ops share: their kernels by name, shape rules, expansions, batching rules and rows of compositions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/messages/wording.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

// Finds the kernels and tile functions that the kernel layer has under the name of an op.

inline KernelForm form_of(const KernelCall& call, const Attributes& attributes) {
  return {call.inputs,  call.outputs,   attributes, call.in,   call.out,     call.fixed,
          call.threads, call.precision, call.bits,  call.seed, call.site.key};
}

/// Returns the kernel of the call's op, made with these attributes: the attributes of the call, or attributes that the
/// op has derived from them.
inline Kernel kernel_of(const KernelCall& call, const Attributes& attributes) {
  return kernels().make(call.op.name, form_of(call, attributes));
}
// For Lowering::kernel and Lowering::tile:
inline Kernel kernel_by_name(const KernelCall& call) {
  return kernel_of(call, call.attributes);
}
inline TileFunction tile_by_name(const KernelCall& call) {
  return kernels().make_tile(call.op.name, form_of(call, call.attributes));
}

// Shared helpers of the float ops.

/// Returns the attribute "axis" of `call`, counted from the front. Throws ShapeError if it is out of range.
inline std::size_t axis_of(const OpCall& call) {
  return normal_axis(call.integer("axis"), call.shape(0).size());
}

/// Throws ShapeError if input number `input` does not have shape `wanted`. `why` explains this shape.
inline void require_shape(const OpCall& call, std::size_t input, const Shape& wanted, const std::string& why) {
  if (call.shape(input) != wanted)
    throw ShapeError("'" + call.op.inputs[input].name + "' of shape " + to_string(call.shape(input)) +
                     " must have shape " + to_string(wanted) + ", " + why);
}

/// Throws Error if the text attribute `name` is not one of the words.
inline void require_word(const OpCall& call, const char* name, std::initializer_list<const char*> words) {
  if (contains(words, call.text(name))) return;
  const auto quoted = [](const char* word) { return "\"" + std::string(word) + "\""; };
  throw Error(name + (" \"" + call.text(name)) + "\" must be one of " + joined(words, quoted));
}

/// Returns `shape` without its last axis. Throws ShapeError if it has no axes.
inline Shape without_last(const Shape& shape) {
  if (shape.empty()) throw ShapeError("needs at least one axis, received an array of shape ()");
  Shape rest = shape;
  rest.erase(rest.size() - 1);
  return rest;
}

// The expansion of a call, for code that looks inside ops: players, derivatives, `vmap`.

/// Returns whether the op reads the block format of input 0: it is a view that begins with the first block, its kernel
/// reads blocks, or it plays other ops.
bool reads_blocks(const OpCall& call);
/// Throws DtypeError if an input has a block format, but is not one that the op reads.
void require_readable_blocks(const OpCall& call);

/// Returns whether players can run the op directly on bfloat16, float16 and int8, because it only moves or casts
/// elements, or plays other ops.
bool runs_on_any_dtype(const Op& op);

/// Records the result of Op::expand for the node on `tape`, in the dtypes of the node. If the op computes with
/// half-precision arrays, its expansion computes in float32 and rounds the results, as the op's kernel would. In
/// float16, squares of numbers above 256 would be infinite.
Vars expansion(const Node& node, const Tape& tape, Vars inputs);

/// Records x[..., first:last, ...] along an axis.
Var part_along(const Var& x, std::size_t axis, std::int64_t first, std::int64_t last);

/// The adjoint of broadcasting: sums `x` over the axes along which `shape` broadcasts to the shape of `x`.
Var sum_to(const Var& x, const Shape& shape);

/// Returns the largest element along `axis`, or 0 if it is -inf. The axis stays, with size 1. Code that computes exp(x)
/// subtracts this element from x first, which prevents overflow. No gradient flows through the element, because the
/// shift cancels.
Var finite_max(const Var& x, std::int64_t axis);
/// Returns log_softmax(x) and log sum exp(x), both along `axis`. In log sum exp(x), the axis stays, with size 1. For a
/// row of -inf, log sum exp(x) is 0.
std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis);

/// log(exp(x0) + exp(x1) + …), element by element and without overflow. Where all terms are -inf, the result is -inf
/// and its gradient 0. The result consists of elementwise ops, which fuse. To reduce the elements of one array along an
/// axis, use logsumexp, which uses the kernels of the reductions.
Var log_add_exp(const Vars& xs);

// Batching rules (Op::batch) that many ops share. They keep the batch as the first axis, so negative axes stay valid.

using BatchRule = std::function<Vars(const BatchCall&)>;

/// For ops whose inputs broadcast together. Gives all inputs the largest rank of any input, by new axes after the batch
/// axis.
Vars batch_elementwise(const BatchCall& call);
/// For ops that treat all axes alike, except for the last axes. Records the same call with the whole batch.
Vars batch_leading(const BatchCall& call);
/// For ops whose first input consists of rows, and whose other inputs (weights) have only the last axis. Declines if
/// one of the weights is mapped.
Vars batch_rows_of_input(const BatchCall& call);
/// For ops whose attribute `name` is an axis of their first input, or of their first output if `of_output`.
BatchRule batch_along(const std::string& name = "axis", bool of_output = false);
/// For ops with a list of axes of their input. An empty list means all axes.
BatchRule batch_axes(const std::string& name = "axis");
/// For ops with lists of at most one number per axis. Each pair consists of the name of a list and the list's entry for
/// the batch axis.
BatchRule batch_per_axis(const std::vector<std::pair<std::string, std::int64_t>>& lists);

/// Returns the sum of `x` [b, …, n] over all axes except the first and the last, [b, n].
Var sum_rows(const Var& x);

/// Returns `x` with its first axis moved to `axis`.
Var first_axis_to(const Var& x, std::int64_t axis);
/// Returns `x` with `axis` moved to the front.
Var axis_to_first(const Var& x, std::int64_t axis);

/// The random numbers that a tape draws, by the keys of their sites. A node that draws with one of these keys repeats a
/// draw. The repeated draw must get the same numbers, not new numbers for each example or step. An example is the
/// gradient of dropout. A call of attention draws with the key of the dropout that it replaces. Its attribute "draws"
/// contains this key.
class DrawnKeys {
 public:
  DrawnKeys() = default;
  explicit DrawnKeys(const Tape& tape) { add(tape); }
  bool repeats(const Node& node) const { return keys_.count(key_of(node)) != 0; }

 private:
  static std::uint64_t key_of(const Node& node);
  void add(const Tape& tape);
  std::unordered_set<std::uint64_t> keys_;
};

/// Records a call that has no inputs and an attribute "shape". `size` is an additional first axis.
Var with_first_axis(Tape tape, const Node& node, std::int64_t size);

// Ops that are compositions of other ops. A table has a row for each op. Players execute the expansions, `grad`
// differentiates them, and `vmap` maps them. A row therefore needs no kernel, gradient or batching rule. The rows are
// constants, which need less memory than code that creates ops.

/// An attribute with a default. The default of a flag or an integer is also given as a number.
struct AttributeRow {
  const char* name = nullptr;  ///< Null if there is no attribute.
  const char* doc = nullptr;
  double initial = 0;
  AttributeType type = AttributeType::number;
};

struct ComposedRow {
  const char* name = nullptr;
  /// The names of float inputs, separated by spaces. "#name" is an integer input, "!name" is a mask, "name?" is
  /// optional, and "=name" accepts any numbers.
  const char* inputs = nullptr;
  const char* doc = nullptr;
  Vars (*expand)(const ExpandCall&) = nullptr;
  std::array<AttributeRow, 4> attributes = {};
  bool differentiable = true;
};

using ShapeRule = std::vector<ValueType> (*)(const OpCall&);

/// Returns the ops of a family. Their rows share a shape rule and the attributes `shared`, which come after their own
/// attributes.
std::vector<Op> composed(const ComposedRow* rows, std::size_t count, ShapeRule shape,
                         const std::vector<AttributeSpec>& shared = {});
template <std::size_t n>
std::vector<Op> composed(const ComposedRow (&rows)[n], ShapeRule shape, const std::vector<AttributeSpec>& shared = {}) {
  return composed(rows, n, shape, shared);
}

/// Adds the ops of families to the table. The families must outlive the table.
void add_all(OpTable& table, const std::vector<std::vector<Op>>& families);

/// Returns the inputs that the text of a row describes.
std::vector<InputSpec> inputs_of(const char* text);

/// Records the op with this name from the library's table, for the typed functions. Returns its first output.
Var call_op(const char* name, const std::vector<Operand>& operands, const Attributes& attributes = {});
/// Like call_op. Returns the first two outputs.
std::pair<Var, Var> call_pair(const char* name, const std::vector<Operand>& operands,
                              const Attributes& attributes = {});

// Define the typed functions of ops with one or two operands, and of ops with one operand and a number.
#define XTAPE_UNARY(name)       \
  Var name(const Argument& x) { \
    return call_op(#name, {x}); \
  }
#define XTAPE_BINARY(name)                       \
  Var name(const Operand& a, const Operand& b) { \
    return call_op(#name, {a, b});               \
  }
#define XTAPE_WITH(name, number)                     \
  Var name(const Argument& x, double number) {       \
    return call_op(#name, {x}, {{#number, number}}); \
  }

}  // namespace xtape
