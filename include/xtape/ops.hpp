/// The ops as C++ functions, under NumPy's and PyTorch's names and argument order. Each records one call on the tape of its
/// arguments; shapes broadcast as in NumPy. docs/ops.md gives every formula, attribute and shape rule. Literals take the
/// dtype of the vars beside them.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 3
#error "this layer of xtape may not see the ops layer"
#endif

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

using Axes = std::vector<std::int64_t>;  ///< Negative axes count from the back; an empty list means all of them.

// Elementwise -----------------------------------------------------------------------------------------------------------
Var add(const Operand& a, const Operand& b);
Var sub(const Operand& a, const Operand& b);
Var mul(const Operand& a, const Operand& b);
Var div(const Operand& a, const Operand& b);  ///< True division: integers give float32.
Var pow(const Operand& a, const Operand& b);
Var maximum(const Operand& a, const Operand& b);  ///< Ties send half of the gradient each way; NaN wins.
Var minimum(const Operand& a, const Operand& b);
Var mod(const Operand& a, const Operand& b);  ///< The result has the sign of `b`, as in Python.
Var neg(const Var& x);
Var abs(const Var& x);
Var sign(const Var& x);
Var square(const Var& x);
Var sqrt(const Var& x);
Var rsqrt(const Var& x);
Var exp(const Var& x);
Var expm1(const Var& x);
Var log(const Var& x);
Var log1p(const Var& x);
Var sin(const Var& x);
Var cos(const Var& x);
Var tanh(const Var& x);
Var erf(const Var& x);
Var sigmoid(const Var& x);
Var relu(const Var& x);
Var gelu(const Var& x, const std::string& approximate = "none");  ///< approximate: "none" (erf) or "tanh".
Var silu(const Var& x);
Var softplus(const Var& x);
Var floor(const Var& x);
Var clip(const Var& x, double low, double high);
Var where(const Var& condition, const Operand& a, const Operand& b);  ///< condition: bool.
Var masked_fill(const Var& x, const Var& mask, double value);         ///< `value` where `mask` is true.
Var cast(const Var& x, Dtype dtype);
Var equal(const Operand& a, const Operand& b);
Var not_equal(const Operand& a, const Operand& b);
Var less(const Operand& a, const Operand& b);
Var less_equal(const Operand& a, const Operand& b);
Var greater(const Operand& a, const Operand& b);
Var greater_equal(const Operand& a, const Operand& b);
Var logical_and(const Var& a, const Var& b);
Var logical_or(const Var& a, const Var& b);
Var logical_not(const Var& x);

// Operators. (Not templates: any operand that is not a var must be a number.)
inline Var operator+(const Var& a, const Operand& b) { return add(a, b); }
inline Var operator-(const Var& a, const Operand& b) { return sub(a, b); }
inline Var operator*(const Var& a, const Operand& b) { return mul(a, b); }
inline Var operator/(const Var& a, const Operand& b) { return div(a, b); }
inline Var operator+(double a, const Var& b) { return add(a, b); }
inline Var operator-(double a, const Var& b) { return sub(a, b); }
inline Var operator*(double a, const Var& b) { return mul(a, b); }
inline Var operator/(double a, const Var& b) { return div(a, b); }
inline Var operator+(int a, const Var& b) { return add(a, b); }
inline Var operator-(int a, const Var& b) { return sub(a, b); }
inline Var operator*(int a, const Var& b) { return mul(a, b); }
inline Var operator/(int a, const Var& b) { return div(a, b); }
inline Var operator-(const Var& x) { return neg(x); }
inline Var operator==(const Var& a, const Operand& b) { return equal(a, b); }
inline Var operator!=(const Var& a, const Operand& b) { return not_equal(a, b); }
inline Var operator<(const Var& a, const Operand& b) { return less(a, b); }
inline Var operator<=(const Var& a, const Operand& b) { return less_equal(a, b); }
inline Var operator>(const Var& a, const Operand& b) { return greater(a, b); }
inline Var operator>=(const Var& a, const Operand& b) { return greater_equal(a, b); }
// Not && || !: these ask a handle whether it is empty.
inline Var operator&(const Var& a, const Var& b) { return logical_and(a, b); }
inline Var operator|(const Var& a, const Var& b) { return logical_or(a, b); }
inline Var operator~(const Var& x) { return logical_not(x); }

// Reductions ------------------------------------------------------------------------------------------------------------
Var sum(const Var& x, const Axes& axis = {}, bool keepdims = false);
Var mean(const Var& x, const Axes& axis = {}, bool keepdims = false);
Var max(const Var& x, const Axes& axis = {}, bool keepdims = false);  ///< Ties share the gradient equally.
Var min(const Var& x, const Axes& axis = {}, bool keepdims = false);
Var var(const Var& x, const Axes& axis = {}, bool keepdims = false, std::int64_t correction = 0);
Var logsumexp(const Var& x, const Axes& axis = {}, bool keepdims = false);  ///< A row of -inf gives -inf.
Var any(const Var& x, const Axes& axis = {}, bool keepdims = false);
Var all(const Var& x, const Axes& axis = {}, bool keepdims = false);
Var argmax(const Var& x, std::int64_t axis = -1, bool keepdims = false);  ///< int64; the first of equals.
Var cumsum(const Var& x, std::int64_t axis = -1, bool reverse = false);
std::pair<Var, Var> top_k(const Var& x, std::int64_t k);  ///< Values (descending) and int64 indices along the last axis.

// Making ----------------------------------------------------------------------------------------------------------------
Var zeros(Tape tape, const Shape& shape, Dtype dtype = Dtype::float32);
Var ones(Tape tape, const Shape& shape, Dtype dtype = Dtype::float32);
Var full(Tape tape, const Shape& shape, double value, Dtype dtype = Dtype::float32);
Var zeros_like(const Var& x);
Var ones_like(const Var& x);
Var iota(Tape tape, const Shape& shape, std::int64_t axis = 0, Dtype dtype = Dtype::int64);  ///< Index along `axis`.
Var eye(Tape tape, std::int64_t rows, std::int64_t columns, Dtype dtype = Dtype::float32);
/// int64 [t]: 0 … t-1 for t = the size along `axis`. Where the tokens have a past (Tape::set_past): [b, t], from it on.
Var positions(const Var& tokens, std::int64_t axis = -1);
/// bool [t, t], true where key > query: what is hidden. Where the tokens have a past: [b, 1, t, capacity].
Var causal_mask(const Var& tokens, std::int64_t axis = -1);
Var uniform(Tape tape, const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::float32);
Var bernoulli(Tape tape, const Shape& shape, double p);  ///< bool, true with probability p.
Var categorical(const Var& logits);                      ///< int64 [...]: drawn from softmax(logits) over the last axis.

// Shapes ----------------------------------------------------------------------------------------------------------------
Var reshape(const Var& x, const Shape& shape);  ///< One size may be -1.
Var transpose(const Var& x, const Axes& axes = {});  ///< Empty: reverses the axes.
Var rearrange(const Var& x, const std::string& pattern, const NamedSizes& sizes = {});  ///< einops patterns.
Var broadcast_to(const Var& x, const Shape& shape);
Var tile(const Var& x, const std::vector<std::int64_t>& repeats);
Var concat(const Vars& xs, std::int64_t axis = 0);
Var stack(const Vars& xs, std::int64_t axis = 0);
Vars split(const Var& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
Vars split(const Var& x, std::int64_t parts, std::int64_t axis = 0);  ///< Into equal parts.
Vars unstack(const Var& x, std::int64_t axis = 0);
/// x[start:stop:step] along every axis, as in Python (negative values count from the back; stops beyond the end are
/// cut). Pass `end` for an open stop.
Var slice(const Var& x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop,
          const std::vector<std::int64_t>& step = {});
inline constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
Var update_slice(const Var& x, const Var& part, const std::vector<std::int64_t>& start,
                 const std::vector<std::int64_t>& step = {});  ///< x with `part` written at `start`.
Var pad(const Var& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after, double value = 0);
Var flip(const Var& x, const Axes& axis);
Var expand_dims(const Var& x, std::int64_t axis);
Var squeeze(const Var& x, const Axes& axis = {});  ///< Empty: every axis of size 1.
Var shift_right(const Var& x, std::int64_t axis = 1, double value = 0);  ///< Drops the last, puts `value` first.

// Products --------------------------------------------------------------------------------------------------------------
Var einsum(const std::string& equation, const Vars& operands);
template <class... More>
Var einsum(const std::string& equation, const Var& first, const More&... more) {
  return einsum(equation, Vars{first, more...});
}
Var matmul(const Var& a, const Var& b);  ///< As NumPy's: vectors, matrices, batches.
Var diag_embed(const Var& x);            ///< [..., n] to [..., n, n].
Var diagonal(const Var& x, std::int64_t axis1, std::int64_t axis2);  ///< Of two axes of one size; it stands last.

// Indexing --------------------------------------------------------------------------------------------------------------
Var take(const Var& x, const Var& indices, std::int64_t axis = 0);  ///< Whole slices of x: an embedding with axis 0.
Var gather(const Var& x, const Var& indices, std::int64_t axis);    ///< Element by element, as torch.gather.
Var index_add(const Var& x, const Var& indices, const Var& part, std::int64_t axis = 0);    ///< The adjoint of take.
Var scatter_add(const Var& x, const Var& indices, const Var& part, std::int64_t axis = 0);  ///< The adjoint of gather.
Var one_hot(const Var& indices, std::int64_t classes, Dtype dtype = Dtype::float32);
Var tril(const Var& x, std::int64_t diagonal = 0);
Var triu(const Var& x, std::int64_t diagonal = 0);

// Normalising, regularising, losses -------------------------------------------------------------------------------------
Var softmax(const Var& x, std::int64_t axis = -1);      ///< A row of -inf (fully masked) gives zeros.
Var log_softmax(const Var& x, std::int64_t axis = -1);  ///< A row of -inf gives -inf.
Var layer_norm(const Var& x, double epsilon = 1e-5);    ///< Over the last axis; epsilon stands inside the root.
Var layer_norm(const Var& x, const Var& weight, double epsilon = 1e-5);
Var layer_norm(const Var& x, const Var& weight, const Var& bias, double epsilon = 1e-5);
Var rms_norm(const Var& x, double epsilon = 1e-6);
Var rms_norm(const Var& x, const Var& weight, double epsilon = 1e-6);
Var dropout(const Var& x, double rate);  ///< The identity unless the tape's mode is train.
/// Sum of the losses and count of the targets that are not `ignore`. logits [..., classes], targets int [...].
/// Smoothing spreads its mass over all classes, or over all but class `smoothing_excludes` where that is >= 0.
std::pair<Var, Var> cross_entropy(const Var& logits, const Var& targets, std::int64_t ignore = -100,
                                  double label_smoothing = 0, std::int64_t smoothing_excludes = -1);

// Control ---------------------------------------------------------------------------------------------------------------
Var stop_gradient(const Var& x);
Var cache(const Var& x, std::int64_t axis = 1);  ///< With what was cached before; x where it has no past.

}  // namespace xtape
