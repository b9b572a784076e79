/// The ops as C++ functions, with the names and the argument order of NumPy and PyTorch. docs/ops.md has every formula
/// and attribute.
///
/// Each function records a call on the tape of its arguments. Operands of different dtypes are promoted (see `apply` in
/// tape.hpp); "float" below means that integers and bool become the tape's default dtype unless an operand is a float.
/// An optional dtype is by default the tape's. Elementwise ops broadcast as in NumPy. Ops are differentiable any number
/// of times, unless stated otherwise.
///
/// All throw ShapeError or DtypeError for shapes and dtypes that do not fit, HandleError for empty, stale or foreign
/// vars, and Error for attributes out of range; then nothing is recorded. Errors, also while playing, name the op and
/// the calling line of the program: that of the first Argument or Operand, or of the Caller.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// Axes of an array: sum(x, 0), sum(x, {0, 2}). Negative axes count from the back; an empty list means all axes.
class Axes : public std::vector<std::int64_t> {
 public:
  Axes() = default;
  template <class T, class = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>>
  Axes(T axis) : vector{static_cast<std::int64_t>(axis)} {}                     // NOLINT: converts by intent
  Axes(std::initializer_list<std::int64_t> axes) : vector(axes) {}              // NOLINT: converts by intent
  Axes(std::vector<std::int64_t> axes) : vector(std::move(axes)) {}             // NOLINT: converts by intent
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  Axes(Iterator first, Iterator last) : vector(first, last) {}
};

// Elementwise. Arithmetic takes numbers, not bool. --------------------------------------------------------------------
Var add(const Operand& a, const Operand& b);  ///< a + b. Integers wrap.
Var sub(const Operand& a, const Operand& b);  ///< a - b. Integers wrap.
Var mul(const Operand& a, const Operand& b);  ///< a * b. Integers wrap.
Var div(const Operand& a, const Operand& b);  ///< a / b, true division: integers give the tape's default dtype.
/// floor(a / b), as Python's `//`; exact for integers. Integers divided by 0 give 0, as in NumPy; floats give inf or
/// NaN. Not differentiable.
Var floor_divide(const Operand& a, const Operand& b);
/// a ** b. Integers to a negative power round towards 0. The gradient for a is 0 where b is 0; that for b is 0 where a
/// is 0 and b >= 0. For floats, the literal exponents 2, 0.5 and -0.5 record square, sqrt and rsqrt, and 1 records
/// nothing.
Var pow(const Operand& a, const Operand& b);
Var maximum(const Operand& a, const Operand& b);  ///< NaN if one operand is. Ties give half of the gradient to each.
Var minimum(const Operand& a, const Operand& b);  ///< The same.
Var mod(const Operand& a, const Operand& b);  ///< a - floor(a / b) * b, as Python's %. Integers mod 0 give 0.
Var neg(const Argument& x);                   ///< -x. Integers wrap.
Var abs(const Argument& x);                   ///< |x|. The gradient at 0 is 0. Integers wrap.
Var sign(const Argument& x);                  ///< -1, 0 or 1; NaN for NaN. Not differentiable.
Var square(const Argument& x);                ///< x * x. Integers wrap.
// From here to softplus: floats.
Var sqrt(const Argument& x);      ///< NaN where x < 0.
Var rsqrt(const Argument& x);     ///< 1 / sqrt(x).
Var exp(const Argument& x);       ///< e ** x.
Var expm1(const Argument& x);     ///< e ** x - 1, accurate near 0.
Var log(const Argument& x);       ///< The natural logarithm; -inf at 0, NaN where x < 0.
Var log1p(const Argument& x);     ///< log(1 + x), accurate near 0.
Var sin(const Argument& x);       ///< x is in radians.
Var cos(const Argument& x);       ///< x is in radians.
Var tanh(const Argument& x);      ///< The hyperbolic tangent.
Var erf(const Argument& x);       ///< The error function.
Var sigmoid(const Argument& x);   ///< 1 / (1 + exp(-x)).
Var relu(const Argument& x);      ///< maximum(x, 0). The gradient at 0 is 0; NaN stays NaN.
/// x / 2 * (1 + erf(x / sqrt(2))) with approximate "none"; with "tanh" its approximation by tanh (Hendrycks and Gimpel,
/// 2016).
Var gelu(const Argument& x, const std::string& approximate = "none");
Var silu(const Argument& x);      ///< x * sigmoid(x).
Var softplus(const Argument& x);  ///< log(1 + exp(x)), without overflow.
Var floor(const Argument& x);     ///< The largest integer <= x, of x's dtype. Not differentiable.
/// minimum(maximum(x, low), high), of x's dtype. An infinite bound is none; other bounds of integers must be integers.
/// The gradient passes where low <= x <= high. Throws Error if low > high.
Var clip(const Argument& x, const Literal& low, const Literal& high);
/// a where `condition` (bool) is true, b elsewhere. The operand that is not chosen gets no gradient, not even NaN.
Var where(const Argument& condition, const Operand& a, const Operand& b);
/// `value` where `mask` (bool) is true, x (numbers) elsewhere, of x's dtype, which must hold `value`. No gradient flows
/// to masked elements.
Var masked_fill(const Argument& x, const Var& mask, const Literal& value);
/// x as another dtype; x itself if it has the dtype. Floats become integers by rounding towards 0 (NaN becomes 0,
/// values out of range the nearest bound) and bool by != 0.
Var cast(const Argument& x, Dtype dtype);
/// x * scale for x of int8. The scale is a float array that broadcasts to the shape of x. Products and `take` read the
/// int8 numbers themselves.
Var dequantize(const Argument& x, const Var& scale);
// Comparisons take any dtype and give bool; logical ops take and give bool. None is differentiable.
Var equal(const Operand& a, const Operand& b);
Var not_equal(const Operand& a, const Operand& b);
Var less(const Operand& a, const Operand& b);
Var less_equal(const Operand& a, const Operand& b);
Var greater(const Operand& a, const Operand& b);
Var greater_equal(const Operand& a, const Operand& b);
Var logical_and(const Argument& a, const Var& b);
Var logical_or(const Argument& a, const Var& b);
Var logical_not(const Argument& x);

// Operators on two vars, or on a var and an Operand or C++ number.
template <class T>
using VarOfNumber = std::enable_if_t<std::is_arithmetic<T>::value || std::is_same<T, Operand>::value, Var>;
/// For what is no operand: one error that says what is, in place of a list of candidates.
template <class T>
using VarOfOther =
    std::enable_if_t<!std::is_arithmetic<T>::value && !std::is_convertible<const T&, Operand>::value, Var>;
#define XTAPE_NO_OPERAND \
  static_assert(std::is_convertible<const T&, Operand>::value, \
                "a var is combined with vars and numbers; make a constant of an array: tape.constant(values)");
#define XTAPE_OPERATOR(symbol, function)                                                                         \
  inline Var operator symbol(const Argument& a, const Argument& b) { return function(a, b); }                    \
  template <class T>                                                                                             \
  VarOfNumber<T> operator symbol(const Argument& a, T b) { return function(a, Operand(b, a.caller())); }         \
  template <class T>                                                                                             \
  VarOfNumber<T> operator symbol(T a, const Argument& b) { return function(Operand(a, b.caller()), b); }         \
  template <class T>                                                                                             \
  VarOfOther<T> operator symbol(const Argument& a, const T&) { XTAPE_NO_OPERAND return a; }                      \
  template <class T>                                                                                             \
  VarOfOther<T> operator symbol(const T&, const Argument& b) { XTAPE_NO_OPERAND return b; }
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
#undef XTAPE_NO_OPERAND
// x += y records x + y and makes x the handle of the sum; the earlier value stays on the tape.
#define XTAPE_ASSIGNMENT(symbol, function) \
  inline Var& operator symbol(Var& a, const Operand& b) { return a = function(Operand(a, b.caller()), b); }
XTAPE_ASSIGNMENT(+=, add)
XTAPE_ASSIGNMENT(-=, sub)
XTAPE_ASSIGNMENT(*=, mul)
XTAPE_ASSIGNMENT(/=, div)
#undef XTAPE_ASSIGNMENT
inline Var operator-(const Argument& x) { return neg(x); }
// Not && || !: these need a truth value, which a var does not have while recording.
inline Var operator&(const Argument& a, const Var& b) { return logical_and(a, b); }
inline Var operator|(const Argument& a, const Var& b) { return logical_or(a, b); }
inline Var operator~(const Argument& x) { return logical_not(x); }

// Reductions. Each axis at most once; reduced axes are dropped, or with keepdims have size 1. -------------------------
Var sum(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< Integers and bool: int64. 0 if empty.
Var mean(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< Float. NaN if empty.
/// The largest or smallest element; NaN if there is one. Ties share the gradient equally. Throws ShapeError over no
/// elements, DtypeError for bool.
Var max(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var min(const Argument& x, const Axes& axis = {}, bool keepdims = false);
/// The variance of n elements (float): sum(square(x - mean(x))) / (n - correction), with correction >= 0. NaN or inf
/// where n is not above the correction. Op "var".
Var variance(const Argument& x, const Axes& axis = {}, bool keepdims = false, std::int64_t correction = 0);
#ifndef XTAPE_NO_OLD_NAMES
[[deprecated("write variance(x, axis)")]] inline Var var(const Argument& x, const Axes& axis = {},
                                                         bool keepdims = false, std::int64_t correction = 0) {
  return variance(x, axis, keepdims, correction);
}
#endif
/// log(sum(exp(x))) without overflow (float). -inf, with gradient 0, if all elements are -inf or there are none.
Var logsumexp(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var any(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< x is bool; false if empty.
Var all(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< x is bool; true if empty.
/// The int64 index of the largest element: the first of equal ones, or of NaNs. Not differentiable. Throws ShapeError
/// over no elements, DtypeError for bool.
Var argmax(const Argument& x, std::int64_t axis = -1, bool keepdims = false);
/// The sum of all elements up to and including each one; with `reverse`, from each one to the last. Integers and bool
/// give int64; float32 is summed in double.
Var cumsum(const Argument& x, std::int64_t axis = -1, bool reverse = false);
/// The k largest numbers along the last axis in descending order, and their int64 indices: [..., k] each. Equal ones
/// keep their order, NaN comes first. Throws ShapeError unless 0 <= k <= the size of the axis.
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k);

// Creation. Not differentiable. ---------------------------------------------------------------------------------------
Var zeros(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var ones(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
/// `value` everywhere. Throws DtypeError if `dtype` cannot hold it.
Var full(Tape tape, const Shape& shape, const Literal& value, std::optional<Dtype> dtype = std::nullopt,
         Caller caller = Caller::here());
Var zeros_like(const Argument& x);  ///< Has the shape and dtype of x.
Var ones_like(const Argument& x);   ///< The same.
/// Each element is its index along `axis`. Throws DtypeError for bool, or if `dtype` cannot hold the last index.
Var iota(Tape tape, const Shape& shape, std::int64_t axis = 0, Dtype dtype = Dtype::int64,
         Caller caller = Caller::here());
/// [rows, columns], ones where both indices are equal, else zeros. columns -1: as many as rows.
Var eye(Tape tape, std::int64_t rows, std::int64_t columns = -1, std::optional<Dtype> dtype = std::nullopt,
        Caller caller = Caller::here());
/// start, start + step … before stop, as in NumPy; a constant. Without `dtype`, int64 if all three are integers, else the
/// default dtype. Throws Error for a step of 0 and for bounds that are not finite.
Var arange(Tape tape, const Literal& start, const Literal& stop, const Literal& step = 1,
           std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var arange(Tape tape, const Literal& stop, Caller caller = Caller::here());  ///< From 0, by 1.
/// `steps` numbers from `start` to `stop`, which is the last one; a constant of a float dtype. Throws Error if `steps` is
/// negative.
Var linspace(Tape tape, double start, double stop, std::int64_t steps, std::optional<Dtype> dtype = std::nullopt,
             Caller caller = Caller::here());
/// int64 [t]: 0 … t - 1, where t is the size of `tokens` along `axis`; values do not matter. If `tokens` has a past
/// (Tape::set_past): [b, t], past[row] + 0, 1 …
Var positions(const Argument& tokens, std::int64_t axis = -1);
/// bool [t, t] (query, key), true where key > query: what a query must not see. t is the size of `tokens` along `axis`.
/// If `tokens` has a past: [b, 1, t, capacity], for queries at past[row] + 0, 1 … and the keys in a cache. With a
/// `window`, also true where key <= query - window (sliding windows: Beltagy et al., 2020). Throws Error if it is negative.
Var causal_mask(const Argument& tokens, std::int64_t axis = -1, std::int64_t window = 0);
// Random ops draw anew for every step of a play (see Player::play), and for every call by its site.
/// Uniform over [low, high), of a float dtype. Throws Error unless low <= high and both are finite.
Var uniform(Tape tape, const Shape& shape, double low = 0, double high = 1,
            std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
/// bool, each true with probability p, independently. Throws Error unless p is in [0, 1].
Var bernoulli(Tape tape, const Shape& shape, double p, Caller caller = Caller::here());
/// From float logits [..., classes], int64 [...]: indices drawn with the probabilities softmax(logits). A row of -inf
/// gives 0.
Var categorical(const Argument& logits);

// Shapes. These take any dtype; a view copies nothing. ----------------------------------------------------------------
/// The elements of x in row-major order under another shape with as many elements; one size may be -1, and is then
/// inferred. A view if strides can express it.
Var reshape(const Argument& x, const Shape& shape);
/// Axis i of the result is axis axes[i] of x; `axes` names every axis once, and empty reverses them. A view.
Var transpose(const Argument& x, const Axes& axes = {});
/// Splits, permutes and joins axes by an einops pattern: "b t (h e) -> b h t e" with sizes {{"h", 12}} for the sizes
/// that x's shape does not determine. Recorded as reshape, transpose, reshape.
Var rearrange(const Argument& x, const std::string& pattern, const NamedSizes& sizes = {});
Var broadcast_to(const Argument& x, const Shape& shape);  ///< As NumPy broadcasts. A view.
/// repeats[i] copies of x, one after the other, along axis i; one number per axis.
Var tile(const Argument& x, const std::vector<std::int64_t>& repeats);
/// The arrays one after the other along an existing axis; their other sizes are equal. They are promoted.
Var concat(const Vars& xs, std::int64_t axis = 0, Caller caller = Caller::here());
/// Arrays of one shape along a new axis, which is axis `axis` of the result. They are promoted.
Var stack(const Vars& xs, std::int64_t axis = 0, Caller caller = Caller::here());
/// x cut along `axis` into parts of these sizes, which must add up to its size. Views; at most 2^20 with the next two.
Vars split(const Argument& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
/// The same, into `parts` equal parts; ShapeError if they do not divide the size.
Vars split(const Argument& x, std::int64_t parts, std::int64_t axis = 0);
Vars unstack(const Argument& x, std::int64_t axis = 0);  ///< The slices along `axis`, without that axis. Views.
/// x[start:stop:step] along every axis, as in Python: negative values count from the back, stops beyond the end are
/// cut, steps may be negative. Axes beyond the lists stay whole. `open_end` means no stop. A view.
Var slice(const Argument& x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop = {},
          const std::vector<std::int64_t>& step = {});
/// x with `part` written over the elements that start at `start` and follow by `step` (1 by default). `part` has as
/// many axes as x and must lie inside it (else ShapeError); negative starts count from the back. The two are promoted.
Var update_slice(const Argument& x, const Var& part, const std::vector<std::int64_t>& start,
                 const std::vector<std::int64_t>& step = {});
/// x with before[i] and after[i] elements of `value` at the two ends of axis i; one number >= 0 per axis.
Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const Literal& value = 0);
Var flip(const Argument& x, const Axes& axis);           ///< The order along these axes reversed. A view.
Var expand_dims(const Argument& x, std::int64_t axis);   ///< A new axis of size 1, axis `axis` of the result. A view.
Var squeeze(const Argument& x, const Axes& axis = {});  ///< Drops these axes, of size 1; empty: all of size 1. A view.
/// x moved by one along `axis`: drops the last slice and puts one of `value` first, so that a decoder reads the tokens
/// before each position. x itself in mode predict.
Var shift_right(const Argument& x, std::int64_t axis = 1, const Literal& value = 0);

// Products of numbers, not bool. --------------------------------------------------------------------------------------
/// The sum of products of the operands over all axes that the result lacks: "bi,io->bo", or "b query d, b key d -> b
/// query key" with names. '...' covers the axes in front that have no letter; sizes of 1 broadcast only there. A letter
/// that occurs twice in an operand means its diagonal. Without '->' the result has the letters that occur once, in
/// alphabetical order. Integers wrap. Many operands are multiplied two at a time, the cheapest pair first.
Var einsum(const std::string& equation, const Vars& operands, Caller caller = Caller::here());
template <class... More>
Var einsum(const std::string& equation, const Argument& first, const More&... more) {
  return einsum(equation, Vars{first, more...}, first.caller());
}
/// The matrix product [..., m, k] by [..., k, n], as NumPy's: axes before the last two broadcast, and an operand with
/// one axis is a vector, whose axis the result lacks.
Var matmul(const Argument& a, const Var& b);
Var diag_embed(const Argument& x);  ///< [..., n] to [..., n, n], zeros off the diagonal. Of any dtype.
/// The diagonal of two axes of one size, as the last axis; the other axes keep their order. Of any dtype. A view.
Var diagonal(const Argument& x, std::int64_t axis1, std::int64_t axis2);

// Indexing by int32 or int64 indices. Those outside [0, size) make the play throw Error, except for one_hot. ----------
/// Slices of x along `axis`: the indices' shape takes the place of the axis. With axis 0, y[i…] = x[indices[i…]], an
/// embedding.
Var take(const Argument& x, const Var& indices, std::int64_t axis = 0);
/// Element by element, as torch.gather: for axis 1 of three, y[a, b, c] = x[a, indices[a, b, c], c]. `indices` has x's
/// sizes except along `axis`.
Var gather(const Argument& x, std::int64_t axis, const Var& indices);
/// x with the slices of `part` added at the indices, the adjoint of take; `part` has the shape of take's result. Equal
/// indices add up, in their order. Numbers only.
Var index_add(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);
/// The same element by element, the adjoint of gather; `part` has the shape of `indices`.
Var scatter_add(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);
// The order before version 0.2. These go with version 0.3.
[[deprecated("write gather(x, axis, indices)")]] inline Var gather(const Argument& x, const Var& indices,
                                                                   std::int64_t axis) {
  return gather(x, axis, indices);
}
[[deprecated("write index_add(x, axis, indices, part)")]] inline Var index_add(const Argument& x, const Var& indices,
                                                                               const Var& part, std::int64_t axis = 0) {
  return index_add(x, axis, indices, part);
}
[[deprecated("write scatter_add(x, axis, indices, part)")]] inline Var scatter_add(const Argument& x,
                                                                                   const Var& indices, const Var& part,
                                                                                   std::int64_t axis = 0) {
  return scatter_add(x, axis, indices, part);
}
/// [..., classes]: 1 at the class of each index, else 0; an index outside [0, classes) gives zeros. Not differentiable.
Var one_hot(const Argument& indices, std::int64_t classes, std::optional<Dtype> dtype = std::nullopt);
// For matrices [..., i, j] of any dtype: x where j - i <= diagonal (tril) or j - i >= diagonal (triu), else 0.
Var tril(const Argument& x, std::int64_t diagonal = 0);
Var triu(const Argument& x, std::int64_t diagonal = 0);

// Normalisation, regularisation, losses, of floats --------------------------------------------------------------------
Var softmax(const Argument& x, std::int64_t axis = -1);      ///< A row of -inf (fully masked) gives zeros, gradient 0.
Var log_softmax(const Argument& x, std::int64_t axis = -1);  ///< A row of -inf gives -inf and passes its cotangent on.
/// (x - mean) / sqrt(variance + epsilon) * weight + bias, with the mean and biased variance over the last axis (Ba et
/// al., 2016). weight and bias have the size of that axis.
Var layer_norm(const Argument& x, double epsilon = 1e-5);
Var layer_norm(const Argument& x, const Var& weight, double epsilon = 1e-5);
Var layer_norm(const Argument& x, const Var& weight, const Var& bias, double epsilon = 1e-5);
/// x / sqrt(mean(square(x)) + epsilon) * weight, over the last axis (Zhang and Sennrich, 2019).
Var rms_norm(const Argument& x, double epsilon = 1e-6);
Var rms_norm(const Argument& x, const Var& weight, double epsilon = 1e-6);
/// In mode train, each element becomes 0 with probability `rate`, in [0, 1], and x / (1 - rate) otherwise (Srivastava
/// et al., 2014); the gradient uses the same random numbers. x itself in other modes, or if the rate is 0.
Var dropout(const Argument& x, double rate);
/// From logits [..., classes] and integer targets [...]: the sum of -sum_c q_c log softmax(logits)_c over all targets
/// that are not `ignore`, of the logits' dtype, and the int64 count of these targets, both of rank 0. q is 1 -
/// label_smoothing on the target; the rest is spread evenly over all classes, or over all but `smoothing_excludes` if
/// that is >= 0 (Szegedy et al., 2016). A target that is neither a class nor `ignore` makes the play throw Error.
/// This is the op `cross_entropy` of definitions; the mean is cross_entropy in xtape/ops/losses.hpp.
std::pair<Var, Var> cross_entropy_sum(const Argument& logits, const Var& targets, std::int64_t ignore = -100,
                                      double label_smoothing = 0, std::int64_t smoothing_excludes = -1);
#ifndef XTAPE_NO_OLD_NAMES
[[deprecated("write cross_entropy_sum for the sum and the count")]] inline std::pair<Var, Var> cross_entropy(
    const Argument& logits, const Var& targets, std::int64_t ignore, double label_smoothing = 0,
    std::int64_t smoothing_excludes = -1) {
  return cross_entropy_sum(logits, targets, ignore, label_smoothing, smoothing_excludes);
}
#endif

// Control -------------------------------------------------------------------------------------------------------------
Var stop_gradient(const Argument& x);  ///< x, through which no gradient flows. A view.
/// x itself. A play throws Error, which names this line and the first index, if an element of `condition` (bool, of any
/// shape) is false. The check takes place only if the result is used: `y = watch(y, abs(y) < 1e4)`.
Var watch(const Argument& x, const Var& condition);
/// In mode predict, if x [b, t, …] has a past (Tape::set_past): the cache [b, capacity, …] with x written at the
/// positions past[row] … past[row] + t - 1 along `axis` (not 0); positions beyond the capacity are dropped. Adds the
/// cache to Tape::states. Otherwise x itself. Not differentiable.
Var cache(const Argument& x, std::int64_t axis = 1);

}  // namespace xtape
