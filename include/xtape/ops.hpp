/// The ops as C++ functions, under NumPy's and PyTorch's names and argument order. Each records one call on the tape of its
/// arguments; shapes broadcast as in NumPy. docs/ops.md gives every formula, attribute and shape rule. Literals take the
/// dtype of the vars beside them; where neither a var nor an argument says which float is meant, it is the tape's default
/// dtype. Each call notes the file and line of the program that makes it, for errors while recording and while playing. An
/// Argument or Operand notes the line on which a var is handed over; functions without one take a Caller.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 4
#error "this layer of xtape may not see the ops layer"
#endif

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

using Axes = std::vector<std::int64_t>;  ///< Negative axes count from the back; an empty list means all of them.

// Elementwise -----------------------------------------------------------------------------------------------------------
Var add(const Operand& a, const Operand& b);
Var sub(const Operand& a, const Operand& b);
Var mul(const Operand& a, const Operand& b);
Var div(const Operand& a, const Operand& b);  ///< True division: integers give the tape's default dtype.
/// The quotient rounded down, as Python's `//`. Integers divided by 0 give 0, as in NumPy.
Var floor_divide(const Operand& a, const Operand& b);
Var pow(const Operand& a, const Operand& b);
Var maximum(const Operand& a, const Operand& b);  ///< Ties send half of the gradient each way; NaN wins.
Var minimum(const Operand& a, const Operand& b);
Var mod(const Operand& a, const Operand& b);  ///< The result has the sign of `b`, as in Python.
Var neg(const Argument& x);
Var abs(const Argument& x);
Var sign(const Argument& x);
Var square(const Argument& x);
Var sqrt(const Argument& x);
Var rsqrt(const Argument& x);
Var exp(const Argument& x);
Var expm1(const Argument& x);
Var log(const Argument& x);
Var log1p(const Argument& x);
Var sin(const Argument& x);
Var cos(const Argument& x);
Var tanh(const Argument& x);
Var erf(const Argument& x);
Var sigmoid(const Argument& x);
Var relu(const Argument& x);
Var gelu(const Argument& x, const std::string& approximate = "none");  ///< approximate: "none" (erf) or "tanh".
Var silu(const Argument& x);
Var softplus(const Argument& x);
Var floor(const Argument& x);
/// Of integers, bounds are whole or infinite.
Var clip(const Argument& x, const Literal& low, const Literal& high);
Var where(const Argument& condition, const Operand& a, const Operand& b);  ///< condition: bool.
Var masked_fill(const Argument& x, const Var& mask, const Literal& value);  ///< `value` where `mask` is true.
Var cast(const Argument& x, Dtype dtype);
Var equal(const Operand& a, const Operand& b);
Var not_equal(const Operand& a, const Operand& b);
Var less(const Operand& a, const Operand& b);
Var less_equal(const Operand& a, const Operand& b);
Var greater(const Operand& a, const Operand& b);
Var greater_equal(const Operand& a, const Operand& b);
Var logical_and(const Argument& a, const Var& b);
Var logical_or(const Argument& a, const Var& b);
Var logical_not(const Argument& x);

// Operators of vars, and of vars with operands or numbers of any arithmetic type.
template <class T>
using VarOfNumber = std::enable_if_t<std::is_arithmetic<T>::value || std::is_same<T, Operand>::value, Var>;
#define XTAPE_OPERATOR(symbol, function)                                                                         \
  inline Var operator symbol(const Argument& a, const Argument& b) { return function(a, b); }                    \
  template <class T>                                                                                             \
  VarOfNumber<T> operator symbol(const Argument& a, T b) { return function(a, Operand(b, a.caller())); }         \
  template <class T>                                                                                             \
  VarOfNumber<T> operator symbol(T a, const Argument& b) { return function(Operand(a, b.caller()), b); }
XTAPE_OPERATOR(+, add)
XTAPE_OPERATOR(-, sub)
XTAPE_OPERATOR(*, mul)
XTAPE_OPERATOR(/, div)
XTAPE_OPERATOR(==, equal)
XTAPE_OPERATOR(!=, not_equal)
XTAPE_OPERATOR(<, less)
XTAPE_OPERATOR(<=, less_equal)
XTAPE_OPERATOR(>, greater)
XTAPE_OPERATOR(>=, greater_equal)
#undef XTAPE_OPERATOR
inline Var operator-(const Argument& x) { return neg(x); }
// Not && || !: these ask for a truth value, which a var does not have while recording.
inline Var operator&(const Argument& a, const Var& b) { return logical_and(a, b); }
inline Var operator|(const Argument& a, const Var& b) { return logical_or(a, b); }
inline Var operator~(const Argument& x) { return logical_not(x); }

// Reductions ------------------------------------------------------------------------------------------------------------
Var sum(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var mean(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var max(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< Ties share the gradient equally.
Var min(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var var(const Argument& x, const Axes& axis = {}, bool keepdims = false, std::int64_t correction = 0);
Var logsumexp(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< A row of -inf gives -inf.
Var any(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var all(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var argmax(const Argument& x, std::int64_t axis = -1, bool keepdims = false);  ///< int64; the first of equals.
Var cumsum(const Argument& x, std::int64_t axis = -1, bool reverse = false);  ///< Integers and bool give int64.
/// Values (descending) and int64 indices along the last axis.
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k);

// Making ----------------------------------------------------------------------------------------------------------------
Var zeros(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var ones(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var full(Tape tape, const Shape& shape, const Literal& value, std::optional<Dtype> dtype = std::nullopt,
         Caller caller = Caller::here());
Var zeros_like(const Argument& x);
Var ones_like(const Argument& x);
/// The index along `axis`.
Var iota(Tape tape, const Shape& shape, std::int64_t axis = 0, Dtype dtype = Dtype::int64,
         Caller caller = Caller::here());
Var eye(Tape tape, std::int64_t rows, std::int64_t columns, std::optional<Dtype> dtype = std::nullopt,
        Caller caller = Caller::here());
/// int64 [t]: 0 … t-1 for t = the size along `axis`. Where the tokens have a past (Tape::set_past): [b, t], from it on.
Var positions(const Argument& tokens, std::int64_t axis = -1);
/// bool [t, t], true where key > query: what is hidden. Where the tokens have a past: [b, 1, t, capacity].
Var causal_mask(const Argument& tokens, std::int64_t axis = -1);
Var uniform(Tape tape, const Shape& shape, double low = 0, double high = 1,
            std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var bernoulli(Tape tape, const Shape& shape, double p, Caller caller = Caller::here());  ///< bool, true with probability p.
Var categorical(const Argument& logits);  ///< int64 [...]: drawn from softmax(logits) over the last axis.

// Shapes ----------------------------------------------------------------------------------------------------------------
Var reshape(const Argument& x, const Shape& shape);  ///< One size may be -1.
Var transpose(const Argument& x, const Axes& axes = {});  ///< Empty: reverses the axes.
Var rearrange(const Argument& x, const std::string& pattern, const NamedSizes& sizes = {});  ///< einops patterns.
Var broadcast_to(const Argument& x, const Shape& shape);
Var tile(const Argument& x, const std::vector<std::int64_t>& repeats);
Var concat(const Vars& xs, std::int64_t axis = 0, Caller caller = Caller::here());
Var stack(const Vars& xs, std::int64_t axis = 0, Caller caller = Caller::here());
Vars split(const Argument& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
Vars split(const Argument& x, std::int64_t parts, std::int64_t axis = 0);  ///< Into equal parts.
Vars unstack(const Argument& x, std::int64_t axis = 0);
/// x[start:stop:step] along every axis, as in Python (negative values count from the back; stops beyond the end are
/// cut). Pass `open_end` for an open stop.
Var slice(const Argument& x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop,
          const std::vector<std::int64_t>& step = {});
inline constexpr std::int64_t open_end = std::numeric_limits<std::int64_t>::max();
Var update_slice(const Argument& x, const Var& part, const std::vector<std::int64_t>& start,
                 const std::vector<std::int64_t>& step = {});  ///< x with `part` written at `start`.
Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const Literal& value = 0);
Var flip(const Argument& x, const Axes& axis);
Var expand_dims(const Argument& x, std::int64_t axis);
Var squeeze(const Argument& x, const Axes& axis = {});  ///< Empty: every axis of size 1.
Var shift_right(const Argument& x, std::int64_t axis = 1, const Literal& value = 0);  ///< Drops the last, puts `value` first.

// Products --------------------------------------------------------------------------------------------------------------
Var einsum(const std::string& equation, const Vars& operands, Caller caller = Caller::here());
template <class... More>
Var einsum(const std::string& equation, const Argument& first, const More&... more) {
  return einsum(equation, Vars{first, more...}, first.caller());
}
Var matmul(const Argument& a, const Var& b);  ///< As NumPy's: vectors, matrices, batches.
Var diag_embed(const Argument& x);            ///< [..., n] to [..., n, n].
Var diagonal(const Argument& x, std::int64_t axis1, std::int64_t axis2);  ///< Of two axes of one size; it stands last.

// Indexing --------------------------------------------------------------------------------------------------------------
Var take(const Argument& x, const Var& indices, std::int64_t axis = 0);  ///< Whole slices of x: an embedding with axis 0.
Var gather(const Argument& x, const Var& indices, std::int64_t axis);    ///< Element by element, as torch.gather.
/// The adjoint of take.
Var index_add(const Argument& x, const Var& indices, const Var& part, std::int64_t axis = 0);
/// The adjoint of gather.
Var scatter_add(const Argument& x, const Var& indices, const Var& part, std::int64_t axis = 0);
Var one_hot(const Argument& indices, std::int64_t classes, std::optional<Dtype> dtype = std::nullopt);
Var tril(const Argument& x, std::int64_t diagonal = 0);
Var triu(const Argument& x, std::int64_t diagonal = 0);

// Normalising, regularising, losses -------------------------------------------------------------------------------------
Var softmax(const Argument& x, std::int64_t axis = -1);      ///< A row of -inf (fully masked) gives zeros.
Var log_softmax(const Argument& x, std::int64_t axis = -1);  ///< A row of -inf gives -inf.
Var layer_norm(const Argument& x, double epsilon = 1e-5);    ///< Over the last axis; epsilon stands inside the root.
Var layer_norm(const Argument& x, const Var& weight, double epsilon = 1e-5);
Var layer_norm(const Argument& x, const Var& weight, const Var& bias, double epsilon = 1e-5);
Var rms_norm(const Argument& x, double epsilon = 1e-6);
Var rms_norm(const Argument& x, const Var& weight, double epsilon = 1e-6);
Var dropout(const Argument& x, double rate);  ///< The identity unless the tape's mode is train.
/// Sum of the losses and count of the targets that are not `ignore`. logits [..., classes], targets int [...].
/// Smoothing spreads its mass over all classes, or over all but class `smoothing_excludes` where that is >= 0.
std::pair<Var, Var> cross_entropy(const Argument& logits, const Var& targets, std::int64_t ignore = -100,
                                  double label_smoothing = 0, std::int64_t smoothing_excludes = -1);

// Control ---------------------------------------------------------------------------------------------------------------
Var stop_gradient(const Argument& x);
Var cache(const Argument& x, std::int64_t axis = 1);  ///< With what was cached before; x where it has no past.

}  // namespace xtape
