/// The ops as C++ functions, with the names and the argument order of NumPy and PyTorch. docs/reference/ops.md leads to
/// every formula and attribute.
///
/// Each function records a call on the tape of its arguments. Operands of different dtypes are promoted (see `apply` in
/// tape.hpp). "float" below means that integers and bool become the tape's default dtype unless an operand is a float.
/// An optional dtype defaults to the tape's default dtype. Elementwise ops broadcast as in NumPy. Ops are
/// differentiable any number of times, unless stated otherwise.
///
/// All functions throw ShapeError or DtypeError if a shape or dtype does not fit, HandleError if a var is empty, stale
/// or foreign, and Error if an attribute is out of range. After an error, nothing is recorded. Errors, also during
/// plays, name the op and the calling line of the program. The first Argument or Operand, or the Caller, gives this
/// line.
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
  Axes(T axis) : vector{static_cast<std::int64_t>(axis)} {}          // NOLINT: converts by intent
  Axes(std::initializer_list<std::int64_t> axes) : vector(axes) {}   // NOLINT: converts by intent
  Axes(std::vector<std::int64_t> axes) : vector(std::move(axes)) {}  // NOLINT: converts by intent
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  Axes(Iterator first, Iterator last) : vector(first, last) {}
};

// Elementwise ops. Arithmetic accepts numbers, not bool. --------------------------------------------------------------
Var add(const Operand& a, const Operand& b);  ///< a + b. Integers wrap.
Var sub(const Operand& a, const Operand& b);  ///< a - b. Integers wrap.
Var mul(const Operand& a, const Operand& b);  ///< a * b. Integers wrap.
Var div(const Operand& a, const Operand& b);  ///< a / b, true division. Integers give the tape's default dtype.
/// floor(a / b), like Python's `//`. Exact for integers. Integers divided by 0 give 0, as in NumPy; floats give inf or
/// NaN. Not differentiable.
Var floor_divide(const Operand& a, const Operand& b);
/// a ** b. Integers with a negative exponent round towards 0. The gradient with respect to a is 0 where b is 0. The
/// gradient with respect to b is 0 where a is 0 and b >= 0. For floats, the literal exponents 2, 0.5 and -0.5 record
/// square, sqrt and rsqrt. The literal exponent 1 records nothing.
Var pow(const Operand& a, const Operand& b);
/// NaN if an operand is NaN. Ties give each operand half of the gradient.
Var maximum(const Operand& a, const Operand& b);
Var minimum(const Operand& a, const Operand& b);  ///< The same.
Var mod(const Operand& a, const Operand& b);      ///< a - floor(a / b) * b, like Python's %. Integers mod 0 give 0.
Var neg(const Argument& x);                       ///< -x. Integers wrap.
Var abs(const Argument& x);                       ///< |x|. The gradient at 0 is 0. Integers wrap.
Var sign(const Argument& x);                      ///< -1, 0 or 1; NaN for NaN. Not differentiable.
Var square(const Argument& x);                    ///< x * x. Integers wrap.
// The ops from here to softplus convert integers and bool to floats.
Var sqrt(const Argument& x);     ///< NaN where x < 0.
Var rsqrt(const Argument& x);    ///< 1 / sqrt(x).
Var exp(const Argument& x);      ///< e ** x.
Var expm1(const Argument& x);    ///< e ** x - 1, accurate near 0.
Var log(const Argument& x);      ///< The natural logarithm; -inf at 0, NaN where x < 0.
Var log1p(const Argument& x);    ///< log(1 + x), accurate near 0.
Var sin(const Argument& x);      ///< x is in radians.
Var cos(const Argument& x);      ///< x is in radians.
Var tanh(const Argument& x);     ///< The hyperbolic tangent.
Var erf(const Argument& x);      ///< The error function.
Var sigmoid(const Argument& x);  ///< 1 / (1 + exp(-x)).
Var relu(const Argument& x);     ///< maximum(x, 0). The gradient at 0 is 0; NaN stays NaN.
/// x / 2 * (1 + erf(x / sqrt(2))). With approximate "tanh", computes the tanh approximation of Hendrycks and Gimpel,
/// 2016.
Var gelu(const Argument& x, const std::string& approximate = "none");
Var silu(const Argument& x);      ///< x * sigmoid(x).
Var softplus(const Argument& x);  ///< log(1 + exp(x)), without overflow.
Var floor(const Argument& x);     ///< The largest integer <= x, of x's dtype. Not differentiable.
/// minimum(maximum(x, low), high), of x's dtype. An infinite bound has no effect. Finite bounds of integers must be
/// integers. The gradient passes where low <= x <= high. Throws Error if low > high.
Var clip(const Argument& x, const Literal& low, const Literal& high);
/// a where `condition` (bool) is true, otherwise b. The operand that is not selected gets no gradient, not even NaN.
Var where(const Argument& condition, const Operand& a, const Operand& b);
/// `value` where `mask` (bool) is true, otherwise x (numbers). The result has x's dtype, which must be able to hold
/// `value`. No gradient flows to masked elements.
Var masked_fill(const Argument& x, const Var& mask, const Literal& value);
/// x as another dtype; x itself if it already has the dtype. Conversion from float to integer rounds towards 0, turns
/// NaN into 0, and clamps values out of range. Conversion from float to bool is x != 0.
Var cast(const Argument& x, Dtype dtype);
/// x * scale for int8 x. The scale is a float array that broadcasts to the shape of x. Matrix products and `take` read
/// the int8 numbers directly.
Var dequantize(const Argument& x, const Var& scale);
/// The numbers of x, which has a block format, as float32. Matrix products and `take` of the result read the blocks
/// directly.
Var dequantize(const Argument& x);
// Comparisons accept any dtype and return bool. Logical ops accept and return bool. None is differentiable.
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
/// Matches operands of unsupported types. The compiler then gives a single error that names the supported types,
/// instead of a list of candidates.
template <class T>
using VarOfOther =
    std::enable_if_t<!std::is_arithmetic<T>::value && !std::is_convertible<const T&, Operand>::value, Var>;
#define XTAPE_NO_OPERAND                                       \
  static_assert(std::is_convertible<const T&, Operand>::value, \
                "a var is combined with vars and numbers; make a constant of an array: tape.constant(values)");
#define XTAPE_OPERATOR(symbol, function)                             \
  inline Var operator symbol(const Argument& a, const Argument& b) { \
    return function(a, b);                                           \
  }                                                                  \
  template <class T>                                                 \
  VarOfNumber<T> operator symbol(const Argument& a, T b) {           \
    return function(a, Operand(b, a.caller()));                      \
  }                                                                  \
  template <class T>                                                 \
  VarOfNumber<T> operator symbol(T a, const Argument& b) {           \
    return function(Operand(a, b.caller()), b);                      \
  }                                                                  \
  template <class T>                                                 \
  VarOfOther<T> operator symbol(const Argument& a, const T&) {       \
    XTAPE_NO_OPERAND return a;                                       \
  }                                                                  \
  template <class T>                                                 \
  VarOfOther<T> operator symbol(const T&, const Argument& b) {       \
    XTAPE_NO_OPERAND return b;                                       \
  }
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
// x += y records x + y and makes x a handle to the sum. The earlier value stays on the tape.
#define XTAPE_ASSIGNMENT(symbol, function)                \
  inline Var& operator symbol(Var& a, const Operand& b) { \
    return a = function(Operand(a, b.caller()), b);       \
  }
XTAPE_ASSIGNMENT(+=, add)
XTAPE_ASSIGNMENT(-=, sub)
XTAPE_ASSIGNMENT(*=, mul)
XTAPE_ASSIGNMENT(/=, div)
#undef XTAPE_ASSIGNMENT
inline Var operator-(const Argument& x) {
  return neg(x);
}
// Logic uses these operators instead of &&, || and !, which need a truth value. A var has no truth value during
// recording.
inline Var operator&(const Argument& a, const Var& b) {
  return logical_and(a, b);
}
inline Var operator|(const Argument& a, const Var& b) {
  return logical_or(a, b);
}
inline Var operator~(const Argument& x) {
  return logical_not(x);
}

// Reductions. Each axis may occur once. Reduced axes are dropped, or kept with size 1 if `keepdims`. ------------------
/// Integers and bool give int64. 0 if empty.
Var sum(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var mean(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< Float. NaN if empty.
/// The largest or smallest element. The result is NaN if an element is NaN. Ties share the gradient equally. Throws
/// ShapeError if there are no elements, DtypeError if x is bool.
Var max(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var min(const Argument& x, const Axes& axis = {}, bool keepdims = false);
/// The variance of n elements (float): sum(square(x - mean(x))) / (n - correction), with correction >= 0. The result is
/// NaN or inf where n <= correction. The op is named "var".
Var variance(const Argument& x, const Axes& axis = {}, bool keepdims = false, std::int64_t correction = 0);
/// log(sum(exp(x))) without overflow (float). The result is -inf, with gradient 0, if all elements are -inf or there
/// are no elements.
Var logsumexp(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var any(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< x is bool; false if empty.
Var all(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< x is bool; true if empty.
/// Returns the int64 index of the largest element. Ties give the first index. If there are NaNs, the result is the
/// index of the first NaN. Not differentiable. Throws ShapeError if there are no elements, DtypeError if x is bool.
Var argmax(const Argument& x, std::int64_t axis = -1, bool keepdims = false);
/// The cumulative sum, including the current element. With `reverse`, it sums from the current element to the last.
/// Integers and bool give int64. float32 accumulates in double.
Var cumsum(const Argument& x, std::int64_t axis = -1, bool reverse = false);
/// The k largest numbers along the last axis in descending order, and their int64 indices: [..., k] each. Equal numbers
/// keep their order. NaN comes first. Throws ShapeError if k is negative or larger than the axis.
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k);

// Creation. Not differentiable. ---------------------------------------------------------------------------------------
Var zeros(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var ones(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
/// `value` everywhere. Throws DtypeError if `dtype` cannot hold it.
Var full(Tape tape, const Shape& shape, const Literal& value, std::optional<Dtype> dtype = std::nullopt,
         Caller caller = Caller::here());
Var zeros_like(const Argument& x);  ///< Has the shape and dtype of x.
Var ones_like(const Argument& x);   ///< Has the shape and dtype of x.
/// Each element is its index along `axis`. Throws DtypeError if `dtype` is bool or cannot hold the last index.
Var iota(Tape tape, const Shape& shape, std::int64_t axis = 0, Dtype dtype = Dtype::int64,
         Caller caller = Caller::here());
/// [rows, columns], 1 where both indices are equal, otherwise 0. columns = -1 means `rows`.
Var eye(Tape tape, std::int64_t rows, std::int64_t columns = -1, std::optional<Dtype> dtype = std::nullopt,
        Caller caller = Caller::here());
/// A constant vector: start, start + step … up to, but not including, stop, as in NumPy. Without `dtype`, the dtype is
/// int64 if all three literals are integers, otherwise the default dtype. Throws Error if the step is 0, or if start or
/// stop is not finite.
Var arange(Tape tape, const Literal& start, const Literal& stop, const Literal& step = 1,
           std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
Var arange(Tape tape, const Literal& stop, Caller caller = Caller::here());  ///< From 0, with step 1.
/// A float constant of `steps` numbers from `start` to `stop` inclusive. Throws Error if `steps` is negative.
Var linspace(Tape tape, double start, double stop, std::int64_t steps, std::optional<Dtype> dtype = std::nullopt,
             Caller caller = Caller::here());
/// int64 [t]: 0 … t - 1, where t is the size of `tokens` along `axis`. The values of `tokens` do not matter. If
/// `tokens` has a past (Tape::set_past), the result is [b, t]: past[row], past[row] + 1 …
Var positions(const Argument& tokens, std::int64_t axis = -1);
/// The bool mask [t, t] (query, key) of the keys that a query must not see: true where key > query. t is the size of
/// `tokens` along `axis`. If `tokens` has a past, the mask is [b, 1, t, capacity], for queries at past[row], past[row]
/// + 1 … and the keys in a cache. With a `window`, the mask is also true where key <= query - window (sliding windows:
/// Beltagy et al., 2020). Throws Error if `window` is negative.
Var causal_mask(const Argument& tokens, std::int64_t axis = -1, std::int64_t window = 0);
// Random ops draw new numbers for every random step (see Player::play). The site of a call selects its random stream.
/// Uniform over [low, high), of a float dtype. Throws Error if low > high or a bound is not finite.
Var uniform(Tape tape, const Shape& shape, double low = 0, double high = 1, std::optional<Dtype> dtype = std::nullopt,
            Caller caller = Caller::here());
/// bool, each true with probability p, independently. Throws Error if p is outside [0, 1].
Var bernoulli(Tape tape, const Shape& shape, double p, Caller caller = Caller::here());
/// int64 [...] from float logits [..., classes]: indices drawn with the probabilities softmax(logits). A row of -inf
/// gives 0.
Var categorical(const Argument& logits);

// Shapes. These ops accept any dtype. A view copies nothing. ----------------------------------------------------------
/// The elements of x in row-major order with another shape of the same number of elements. One size may be -1; reshape
/// infers it. The result is a view if strides can express it.
Var reshape(const Argument& x, const Shape& shape);
/// Axis i of the result is axis axes[i] of x. `axes` names every axis once. If `axes` is empty, the order of the axes
/// is reversed. A view.
Var transpose(const Argument& x, const Axes& axes = {});
/// Splits, permutes and joins axes according to an einops pattern: "b t (h e) -> b h t e". `sizes`, such as {{"h",
/// 12}}, gives the sizes that x's shape does not determine. Recorded as reshape, transpose, reshape.
Var rearrange(const Argument& x, const std::string& pattern, const NamedSizes& sizes = {});
Var broadcast_to(const Argument& x, const Shape& shape);  ///< NumPy broadcasting. A view.
/// Repeats x along each axis: repeats[i] copies of x along axis i, with one number per axis.
Var tile(const Argument& x, const std::vector<std::int64_t>& repeats);
/// Concatenates arrays along an existing axis. Their other sizes must be equal. The arrays are promoted.
Var concat(const Vars& xs, std::int64_t axis = 0, Caller caller = Caller::here());
/// Stacks arrays of one shape along a new axis, which becomes axis `axis` of the result. The arrays are promoted.
Var stack(const Vars& xs, std::int64_t axis = 0, Caller caller = Caller::here());
/// Splits x along `axis` into parts of these sizes, which must add up to the size of the axis. Views. split and unstack
/// give at most 2^20 parts.
Vars split(const Argument& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
/// Splits x into `parts` equal parts. Throws ShapeError if `parts` does not divide the size.
Vars split(const Argument& x, std::int64_t parts, std::int64_t axis = 0);
Vars unstack(const Argument& x, std::int64_t axis = 0);  ///< The slices along `axis`, without that axis. Views.
/// x[start:stop:step] along every axis, as in Python. Negative values count from the back. Stops beyond the end are
/// clipped. Steps can be negative. Axes beyond the lists stay whole. `open_end` means no stop. A view.
Var slice(const Argument& x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop = {},
          const std::vector<std::int64_t>& step = {});
/// x with `part` written over the elements from `start` in steps of `step` (1 by default). `part` must have as many
/// axes as x. Negative starts count from the back. x and `part` are promoted. Throws ShapeError if `part` does not lie
/// inside x.
Var update_slice(const Argument& x, const Var& part, const std::vector<std::int64_t>& start,
                 const std::vector<std::int64_t>& step = {});
/// x with before[i] elements of `value` before axis i and after[i] elements after it. There is one number >= 0 per
/// axis.
Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const Literal& value = 0);
Var flip(const Argument& x, const Axes& axis);  ///< Reverses the order along these axes. A view.
/// Adds an axis of size 1 as axis `axis` of the result. A view.
Var expand_dims(const Argument& x, std::int64_t axis);
/// Drops these axes of size 1. If `axis` is empty, drops all axes of size 1. A view.
Var squeeze(const Argument& x, const Axes& axis = {});
/// Shifts x by one along `axis`: drops the last slice and inserts a slice of `value` at the front. A decoder then reads
/// the tokens before each position. In mode predict, the result is x itself.
Var shift_right(const Argument& x, std::int64_t axis = 1, const Literal& value = 0);

// Products of numbers, not bool. --------------------------------------------------------------------------------------
/// The sum of products of the operands over all axes that the result lacks: "bi,io->bo", or with names "b query d, b
/// key d -> b query key". '...' stands for the leading axes without letters. Axes of size 1 broadcast. A letter that
/// occurs twice in an operand means its diagonal. Without '->', the result has the letters that occur once, in
/// alphabetical order. Integers wrap. einsum multiplies more than two operands in pairs, starting with the cheapest
/// pair.
Var einsum(const std::string& equation, const Vars& operands, Caller caller = Caller::here());
template <class... More>
Var einsum(const std::string& equation, const Argument& first, const More&... more) {
  return einsum(equation, Vars{first, more...}, first.caller());
}
/// The matrix product of [..., m, k] and [..., k, n], as in NumPy. Axes before the last two broadcast. An operand with
/// one axis is a vector, and the result lacks this axis.
Var matmul(const Argument& a, const Var& b);
Var diag_embed(const Argument& x);  ///< [..., n] to [..., n, n] with zeros off the diagonal, for any dtype.
/// The diagonal of two axes of equal size, as the last axis. The other axes keep their order. Accepts any dtype. A
/// view.
Var diagonal(const Argument& x, std::int64_t axis1, std::int64_t axis2);

// Indexing with int32 or int64 indices. Playing throws Error if an index is outside [0, size), except for one_hot. ----
/// Slices of x along `axis`. The shape of the indices replaces the axis. With axis 0, y[i…] = x[indices[i…]], an
/// embedding lookup.
Var take(const Argument& x, const Var& indices, std::int64_t axis = 0);
/// The sums or means of bags of rows, like torch.nn.functional.embedding_bag. With indices [b, k] and `mode` "sum",
/// y[b] is the sum over k of weight[indices[b, k]]. `mode` is "sum" or "mean". Indices may have more axes; the last
/// axis is the axis of k.
Var embedding_bag(const Argument& indices, const Var& weight, const std::string& mode = "mean");
/// The weighted sums of bags of rows. With indices [b, k], y[b] is the sum over k of per_sample_weights[b, k] *
/// weight[indices[b, k]]. `per_sample_weights` has the shape of `indices`.
Var embedding_bag(const Argument& indices, const Var& weight, const Var& per_sample_weights);
/// Gathers elements like torch.gather. If x has three axes and `axis` is 1, then y[a, b, c] = x[a, indices[a, b, c],
/// c]. Except along `axis`, no axis of `indices` may be longer than that of x.
Var gather(const Argument& x, std::int64_t axis, const Var& indices);
/// x with the slices of `part` added at the indices. This is the adjoint of take. `part` has the shape of take's
/// result. Slices of equal indices add up, in their order. Accepts numbers only.
Var index_add(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);
/// x with the elements of `part` added at the indices. This is the adjoint of gather. `part` has the shape of
/// `indices`. Except along `axis`, no axis of `indices` may be longer than that of x.
Var scatter_add(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);
/// [..., classes]: 1 at the class of each index, otherwise 0. An index outside [0, classes) gives zeros. Not
/// differentiable.
Var one_hot(const Argument& indices, std::int64_t classes, std::optional<Dtype> dtype = std::nullopt);
// For matrices [..., i, j] of any dtype: x where j - i <= diagonal (tril) or j - i >= diagonal (triu), otherwise 0.
Var tril(const Argument& x, std::int64_t diagonal = 0);
Var triu(const Argument& x, std::int64_t diagonal = 0);

// Normalisation, regularisation and losses of floats ------------------------------------------------------------------
Var softmax(const Argument& x, std::int64_t axis = -1);      ///< A row of -inf (fully masked) gives zeros, gradient 0.
Var log_softmax(const Argument& x, std::int64_t axis = -1);  ///< A row of -inf gives -inf and passes its cotangent on.
/// (x - mean) / sqrt(variance + epsilon) * weight + bias. The mean and the biased variance are those over the last axis
/// (Ba et al., 2016). weight and bias have the size of that axis.
Var layer_norm(const Argument& x, double epsilon = 1e-5);
Var layer_norm(const Argument& x, const Var& weight, double epsilon = 1e-5);
Var layer_norm(const Argument& x, const Var& weight, const Var& bias, double epsilon = 1e-5);
/// x / sqrt(mean(square(x)) + epsilon) * weight, over the last axis (Zhang and Sennrich, 2019).
Var rms_norm(const Argument& x, double epsilon = 1e-6);
Var rms_norm(const Argument& x, const Var& weight, double epsilon = 1e-6);
/// In mode train, each element becomes 0 with probability `rate` in [0, 1], and x / (1 - rate) otherwise (Srivastava et
/// al., 2014). The gradient uses the same random numbers. The result is x itself in other modes, or if the rate is 0.
Var dropout(const Argument& x, double rate);
/// Takes logits [..., classes] and integer targets [...]. The loss of a target is -sum_c q_c log softmax(logits)_c.
/// Targets equal to `ignore` do not count. Returns the sum of the losses of all other targets, in the dtype of the
/// logits, and the int64 number of these other targets. Both have rank 0. q has 1 - label_smoothing at the target
/// class, and label_smoothing spread evenly over all classes, or over all classes except `smoothing_excludes` if it is
/// >= 0 (Szegedy et al., 2016). Playing throws Error if a target is neither a class nor `ignore`. This is the op
/// `cross_entropy` of definitions. cross_entropy in xtape/ops/losses.hpp computes the mean.
std::pair<Var, Var> cross_entropy_sum(const Argument& logits, const Var& targets, std::int64_t ignore = -100,
                                      double label_smoothing = 0, std::int64_t smoothing_excludes = -1);

// Control -------------------------------------------------------------------------------------------------------------
Var stop_gradient(const Argument& x);  ///< x itself, but no gradient flows through it. A view.
/// x itself. Playing throws Error if an element of `condition` (bool, of any shape) is false. The error names this line
/// and the first index. The check takes place only if the result is used: `y = watch(y, abs(y) < 1e4)`.
Var watch(const Argument& x, const Var& condition);
/// In mode predict, if x [b, t, …] has a past (Tape::set_past): returns the cache [b, capacity, …] with x written at
/// the positions past[row] … past[row] + t - 1 along `axis` (not 0). Positions beyond the capacity are dropped. Adds
/// the cache to Tape::states. Otherwise returns x itself. Not differentiable.
Var cache(const Argument& x, std::int64_t axis = 1);

}  // namespace xtape
