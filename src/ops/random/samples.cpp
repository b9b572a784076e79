// Samples of distributions and random choices. Each is a composition of ops with a single draw of `uniform`. An
// expansion has one site, so a second draw would repeat the numbers of the first draw.
#include <cmath>

#include "ops/elementwise/arithmetic.hpp"
#include "ops/shapes/creation.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/ops/linear_algebra.hpp"
#include "xtape/ops/order.hpp"
#include "xtape/ops/random.hpp"

namespace xtape {

namespace {
/// Returns half of the distance between neighbouring draws from [0, 1).
double half_step(Dtype dtype) {
  return dtype == Dtype::float32 ? 0x1p-25 : 0x1p-54;
}
/// Uniform numbers in (0, 1). A draw of 0 becomes half a step.
Var open_uniform(Tape tape, const Shape& shape, Dtype dtype) {
  return maximum(uniform(tape, shape, 0, 1, dtype), half_step(dtype));
}
/// Uniform numbers in (-1, 1), symmetric and never 0. All draws are shifted by half a step, which is exact.
Var signed_uniform(Tape tape, const Shape& shape, Dtype dtype) {
  return uniform(tape, shape, -1, 1, dtype) + 2 * half_step(dtype);
}
/// Computes two normal numbers from each pair of uniform numbers (Box and Muller, 1958), which is 40 times as fast as
/// erfinv.
Var standard_normal(Tape tape, const Shape& shape, Dtype dtype) {
  const std::int64_t count = count_of(shape), pairs = count / 2 + count % 2;
  const Vars u = unstack(open_uniform(tape, {2, pairs}, dtype));
  const Var distance = sqrt(log(u[0]) * -2.0), angle = u[1] * (2 * M_PI);
  return reshape(slice(concat({distance * cos(angle), distance * sin(angle)}), {0}, {count}), shape);
}
/// Returns the type in which a sample is computed. In half precision, uniform numbers would round to 1.
ValueType sample_of(const ExpandCall& call) {
  ValueType type = call.node.outputs[0];
  if (is_half(type.dtype)) type.dtype = Dtype::float32;
  return type;
}
Var drawn_open(const ExpandCall& call) {
  return open_uniform(call.tape, sample_of(call).shape, sample_of(call).dtype);
}

Vars expand_randn(const ExpandCall& call) {
  return {standard_normal(call.tape, sample_of(call).shape, sample_of(call).dtype)};
}
Vars expand_randint(const ExpandCall& call) {
  const std::int64_t low = call.integer("low"), high = call.integer("high");
  const Var u = uniform(call.tape, sample_of(call).shape, 0, 1, Dtype::float64);
  return {cast(floor(u * static_cast<double>(high - low)), Dtype::int64) + low};
}
Vars expand_randperm(const ExpandCall& call) {
  return {argsort(uniform(call.tape, {call.integer("n")}, 0, 1, Dtype::float64))};
}

Vars expand_normal(const ExpandCall& call) {
  return {call.inputs[0] + call.inputs[1] * standard_normal(call.tape, sample_of(call).shape, sample_of(call).dtype)};
}
Vars expand_truncated_normal(const ExpandCall& call) {
  const Var &mean = call.inputs[0], scale = call.inputs[1] * M_SQRT2, u = drawn_open(call);
  const double low = call.number("low"), high = call.number("high");
  const auto at = [&](double bound) {
    return std::isinf(bound) ? full(call.tape, {}, bound > 0 ? 1 : -1, u.dtype()) : erf((bound - mean) / scale);
  };
  const Var from = at(low), to = at(high);
  const double most = 1 - 2 * half_step(u.dtype());  // erfinv(1) is infinite
  return {clip(mean + scale * erfinv(clip(from + (to - from) * u, -most, most)), low, high)};
}
Vars expand_exponential(const ExpandCall& call) {
  return {-log1p(-drawn_open(call)) / call.inputs[0]};
}
Vars expand_laplace(const ExpandCall& call) {
  const Var u = signed_uniform(call.tape, sample_of(call).shape, sample_of(call).dtype);
  return {call.inputs[0] - call.inputs[1] * sign(u) * log1p(-abs(u))};
}
Vars expand_gamma(const ExpandCall& call) {
  return {gammaincinv(call.inputs[0], drawn_open(call)) / call.inputs[1]};
}
/// A beta sample is x / (x + y) with gamma samples x and y. For small concentrations, they are below all positive
/// numbers. Therefore computes their logarithms, in float64.
Vars expand_beta(const ExpandCall& call) {
  const ValueType type = sample_of(call);
  Shape twice = type.shape;
  twice.push_back(2);
  const Vars u = unstack(cast(open_uniform(call.tape, twice, type.dtype), Dtype::float64), -1);
  const auto log_of_gamma = [&](std::size_t i) {
    const Var a = cast(call.inputs[i], Dtype::float64), x = gammaincinv(a, u[i]);
    const Var tiny = x < 1e-100;  // then gammainc(a, x) is x ** a / gamma(a + 1)
    return where(tiny, (log(u[i]) + lgamma(a + 1)) / a, log(where(tiny, 1, x)));
  };
  return {sigmoid(log_of_gamma(0) - log_of_gamma(1))};
}
Vars expand_poisson(const ExpandCall& call) {
  return {poisson_quantile(drawn_open(call), call.inputs[0])};
}
Vars expand_multivariate_normal(const ExpandCall& call) {
  const Var z = standard_normal(call.tape, sample_of(call).shape, sample_of(call).dtype);
  return {call.inputs[0] + squeeze(matmul(linalg::cholesky(call.inputs[1]), expand_dims(z, -1)), {-1})};
}

Vars expand_permutation(const ExpandCall& call) {
  const std::int64_t axis = call.integer("axis");
  return {take(call.inputs[0], randperm(call.tape, call.inputs[0].size(axis)), axis)};
}
Vars expand_multinomial(const ExpandCall& call) {
  const Var weights = call_op("checked_weights", {call.inputs[0]});
  const std::int64_t count = call.integer("num_samples");
  if (call.flag("replacement")) {
    const Var sums = cumsum(weights, -1), u = uniform(call.tape, sample_of(call).shape, 0, 1, Dtype::float64);
    std::vector<std::int64_t> all(sums.rank(), 0);
    all.back() = sums.size(-1) - 1;
    // Limits the index to the last one, because the product rounds up to the sum if this is subnormal.
    return {minimum(searchsorted(sums, u * slice(sums, all, {}), true), sums.size(-1) - 1)};
  }
  const Var gumbel = -log(-log(open_uniform(call.tape, weights.shape(), Dtype::float64)));
  return {top_k(log(weights) + gumbel, count).second};
}
Vars expand_choice(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::int64_t axis = call.integer("axis");
  const Var weights = call.inputs.size() > 1 ? call.inputs[1] : ones(call.tape, {x.size(axis)}, Dtype::float64);
  return {take(x, multinomial(weights, call.integer("num_samples"), call.flag("replacement")), axis)};
}

const ComposedRow randn_rows[] = {{"randn", "", "Standard normal numbers.", expand_randn, {}, false}};
const ComposedRow randint_rows[] = {
    {"randint", "", "Uniformly distributed int64 numbers from low to high - 1.", expand_randint, {}, false}};
const ComposedRow randperm_rows[] = {
    {"randperm", "", "The numbers 0 … n - 1 in random order, int64 [n].", expand_randperm, {}, false}};
const ComposedRow sample_rows[] = {
    {"normal", "mean std", "Normally distributed numbers: mean + std * z with standard normal z.", expand_normal},
    {"truncated_normal",
     "mean std",
     "Normally distributed numbers, conditioned on the range [low, high].",
     expand_truncated_normal,
     {{{"low", "The least number.", -2}, {"high", "The greatest number.", 2}}}},
    {"exponential", "rate", "Exponentially distributed numbers, with the density rate * exp(-rate y).",
     expand_exponential},
    {"laplace", "loc scale", "Laplace-distributed numbers, with the density exp(-|y - loc| / scale) / (2 scale).",
     expand_laplace},
    {"gamma", "concentration rate",
     "Gamma-distributed numbers, with a density proportional to y ** (concentration - 1) * exp(-rate y).",
     expand_gamma},
    {"beta", "a b", "Beta-distributed numbers, with a density proportional to y ** (a - 1) * (1 - y) ** (b - 1).",
     expand_beta}};
const ComposedRow poisson_rows[] = {{"poisson",
                                     "rate",
                                     "Poisson-distributed whole numbers, in the dtype of the rate. No gradient flows.",
                                     expand_poisson,
                                     {},
                                     false}};
const ComposedRow multivariate_rows[] = {
    {"multivariate_normal", "mean covariance",
     "Normally distributed vectors [..., n] with the given means and positive definite covariances [..., n, n].",
     expand_multivariate_normal}};
constexpr AttributeRow slices{"axis", "The axis of the slices.", 0, AttributeType::integer};
const ComposedRow permutation_rows[] = {
    {"permutation", "=x", "x with its slices along `axis` in random order.", expand_permutation, {{slices}}}};
const ComposedRow multinomial_rows[] = {
    {"multinomial",
     "weights",
     "Returns int64 [..., num_samples]: indices drawn with probabilities proportional to the weights [..., n]. Without "
     "replacement, each index is drawn at most once, and indices of weight 0 are drawn last. Weights that are "
     "negative, infinite, NaN or all 0 are an error when played.",
     expand_multinomial,
     {},
     false}};
const ComposedRow choice_rows[] = {
    {"choice",
     "=x weights?",
     "Draws num_samples slices of x along `axis`, with equal probabilities or with the weights [n]. See multinomial.",
     expand_choice,
     {{slices}}}};

std::vector<ValueType> randn_type(const OpCall& call) {
  return {drawn_type(call)};
}
std::vector<ValueType> randint_type(const OpCall& call) {
  const std::int64_t low = call.integer("low"), high = call.integer("high");
  const std::uint64_t width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (low >= high || width > std::uint64_t{1} << 53)
    throw Error("low must be below high, by at most 2^53, got low " + std::to_string(low) + " and high " +
                std::to_string(high));
  return {{Dtype::int64, shape_attribute(call)}};
}
std::vector<ValueType> randperm_type(const OpCall& call) {
  if (call.integer("n") < 0) throw ShapeError("n must not be negative, got " + std::to_string(call.integer("n")));
  return {{Dtype::int64, {call.integer("n")}}};
}
std::vector<ValueType> samples_type(const OpCall& call) {
  if (call.attributes.find("low") != nullptr && !(call.number("low") < call.number("high")))
    throw Error("low must be below high, got low " + to_string(Attribute{call.number("low")}) + " and high " +
                to_string(Attribute{call.number("high")}));
  return same_dtype(call);
}
std::vector<ValueType> vectors_type(const OpCall& call) {
  const Shape &mean = call.shape(0), &covariance = call.shape(1);
  const std::size_t rank = covariance.size();
  if (mean.empty() || rank < 2 || covariance[rank - 2] != covariance.back() || covariance.back() != mean.back())
    throw ShapeError("the mean must be [..., n] and the covariance [..., n, n], got " + to_string(mean) + " and " +
                     to_string(covariance));
  return {{call.dtype(0), broadcast_shapes({mean, without_last(covariance)})}};
}
void check_count(const OpCall& call, std::int64_t n) {
  const std::int64_t count = call.integer("num_samples");
  if (count < 0 || (!call.flag("replacement") && count > n) || (n == 0 && count > 0))
    throw ShapeError("num_samples must be at least 0 and, without replacement, at most " + std::to_string(n) +
                     ", got " + std::to_string(count));
}
std::vector<ValueType> multinomial_type(const OpCall& call) {
  Shape shape = call.shape(0);
  if (shape.empty() || shape.back() == 0)
    throw ShapeError("needs at least one weight along the last axis, got shape " + to_string(shape));
  check_count(call, shape.back());
  shape.back() = call.integer("num_samples");
  return {{Dtype::int64, shape}};
}
std::vector<ValueType> slices_type(const OpCall& call) {
  Shape shape = call.shape(0);
  const std::size_t axis = axis_of(call);
  if (call.attributes.find("num_samples") != nullptr) {
    if (shape[axis] == 0) throw ShapeError("needs at least one slice to choose from, got " + to_string(shape));
    if (call.inputs.size() > 1) require_shape(call, 1, {shape[axis]}, "a weight for each slice");
    check_count(call, shape[axis]);
    shape[axis] = call.integer("num_samples");
  }
  return {{call.dtype(0), shape}};
}

Var drawn(Tape tape, const char* op, const Attributes& attributes, Caller caller) {
  return apply(tape, builtin_ops().at(op), {}, attributes, caller)[0];
}
}  // namespace

Var randn(Tape tape, const Shape& shape, std::optional<Dtype> dtype, Caller caller) {
  return drawn(tape, "randn", {{"shape", shape_value(shape)}, {"dtype", dtype_value(dtype)}}, caller);
}
Var randint(Tape tape, const Shape& shape, std::int64_t low, std::int64_t high, Caller caller) {
  return drawn(tape, "randint", {{"shape", shape_value(shape)}, {"low", low}, {"high", high}}, caller);
}
Var randperm(Tape tape, std::int64_t n, Caller caller) {
  return drawn(tape, "randperm", {{"n", n}}, caller);
}
XTAPE_BINARY(normal)
Var truncated_normal(const Operand& mean, const Operand& std, double low, double high) {
  return call_op("truncated_normal", {mean, std}, {{"low", low}, {"high", high}});
}
Var exponential(const Operand& rate) {
  return call_op("exponential", {rate});
}
XTAPE_BINARY(laplace)
XTAPE_BINARY(gamma)
XTAPE_BINARY(beta)
Var poisson(const Operand& rate) {
  return call_op("poisson", {rate});
}
Var multivariate_normal(const Argument& mean, const Var& covariance) {
  return call_op("multivariate_normal", {mean, covariance});
}
Var permutation(const Argument& x, std::int64_t axis) {
  return call_op("permutation", {x}, {{"axis", axis}});
}
Var multinomial(const Argument& weights, std::int64_t num_samples, bool replacement) {
  return call_op("multinomial", {weights}, {{"num_samples", num_samples}, {"replacement", replacement}});
}
Var choice(const Argument& x, std::int64_t num_samples, bool replacement, std::int64_t axis) {
  return call_op("choice", {x}, {{"num_samples", num_samples}, {"replacement", replacement}, {"axis", axis}});
}
Var choice(const Argument& x, const Var& weights, std::int64_t num_samples, bool replacement, std::int64_t axis) {
  return call_op("choice", {x, weights}, {{"num_samples", num_samples}, {"replacement", replacement}, {"axis", axis}});
}

void list_samples(OpTable& table) {
  static const std::vector<std::vector<Op>> families = [] {
    const auto integer = [](const char* name, const char* doc) {
      return AttributeSpec{name, AttributeType::integer, doc, std::nullopt};
    };
    const auto choosing = [&](bool initial) {
      return std::vector{integer("num_samples", "The number of draws."),
                         AttributeSpec{"replacement", AttributeType::boolean,
                                       "If true, the same index can be drawn several times.", initial}};
    };
    std::vector<std::vector<Op>> all{
        composed(randn_rows, randn_type, {shape_spec(), float_dtype_spec("float32 or float64.")}),
        composed(randint_rows, randint_type,
                 {shape_spec(), integer("low", "The least number."), integer("high", "The greatest number plus 1.")}),
        composed(randperm_rows, randperm_type, {integer("n", "The number of elements.")}),
        composed(sample_rows, samples_type),
        composed(poisson_rows, samples_type),
        composed(multivariate_rows, vectors_type),
        composed(permutation_rows, slices_type),
        composed(multinomial_rows, multinomial_type, choosing(false)),
        composed(choice_rows, slices_type, choosing(true))};
    for (auto& family : all)
      for (Op& op : family) op.random = true;
    all.back()[0].inputs[0].accept = Accept::any;  // not promoted together with the weights
    return all;
  }();
  add_all(table, families);
}

}  // namespace xtape
