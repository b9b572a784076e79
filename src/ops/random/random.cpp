// Random arrays and dropout. The numbers depend only on the player's seed, the key of the call's site, the step of the
// play and the index of the element.
#include "kernels/random/draws.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/shapes/creation.hpp"

namespace xtape {

namespace {
/// Returns the value of an attribute that is a probability. Throws Error if it is not in [0, 1].
double probability(const Attributes& attributes, const char* name) {
  const double p = attributes.get<double>(name);
  if (!(p >= 0 && p <= 1)) throw Error(std::string(name) + " must be in [0, 1], got " + to_string(Attribute{p}));
  return p;
}

const Op& uniform_op() {
  static const Op entry{
      .name = "uniform",
      .doc = R"(Uniform random numbers in [low, high), with 24 random bits in float32 and 53 in float64.)",
      .attributes = {shape_spec(),
                     {"low", AttributeType::number, "The lower bound, included.", 0.0},
                     {"high", AttributeType::number, "The upper bound, excluded unless it equals `low`.", 1.0},
                     float_dtype_spec("float32 or float64.")},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        const double low = call.number("low"), high = call.number("high");
        if (!(low <= high && high - low <= std::numeric_limits<float>::max()))
          throw Error("low must not be above high, and high - low must be finite in float32, got low " +
                      to_string(Attribute{low}) + " and high " + to_string(Attribute{high}));
        return {drawn_type(call)};
      },
      .differentiable = false,
      .random = true,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

const Op& bernoulli_op() {
  static const Op entry{
      .name = "bernoulli",
      .doc = "A bool array whose elements are true with probability p, independently.",
      .attributes = {shape_spec(), {"p", AttributeType::number, "The probability of true.", std::nullopt}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        probability(call.attributes, "p");
        return {{Dtype::boolean, shape_attribute(call)}};
      },
      .differentiable = false,
      .random = true,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

const Op& categorical_op() {
  static const Op entry{
      .name = "categorical",
      .doc =
          R"(For each row of logits (along the last axis), an int64 index drawn with the probabilities softmax(row). A
           row of -inf gives index 0. A logit that is NaN or inf is an error when played.)",
      .inputs = {{"logits", Accept::floating}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        Shape shape = call.shape(0);
        if (shape.empty() || shape.back() == 0)
          throw ShapeError("needs at least one logit along the last axis, got shape " + to_string(shape));
        shape.erase(shape.size() - 1);
        return {{Dtype::int64, shape}};
      },
      .batch = batch_leading,
      .differentiable = false,
      .random = true,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

const Op& checked_weights_op() {
  static const Op entry{
      .name = "checked_weights",
      .doc =
          R"(The weights [..., n] as float64. A row (along the last axis) is an error when played if one of its weights
           is negative, infinite or NaN, or if their sum is 0 or infinite.)",
      .inputs = {{"weights", Accept::floating}},
      .shape =
          +[](const OpCall& call) {
            if (call.shape(0).empty()) throw ShapeError("needs weights along the last axis, got shape ()");
            return std::vector<ValueType>{{Dtype::float64, call.shape(0)}};
          },
      .gradient = +[](const GradientCall& call) { return Vars{cast(call.cotangent(), call.inputs[0].dtype())}; },
      .batch = batch_leading,
      .lowering = {.kernel =
                       +[](const KernelCall& call) { return make_checked_weights(form_of(call, call.attributes)); }}};
  return entry;
}

const Op& dropout_op() {
  static const Op entry{
      .name = "dropout",
      .doc = R"(Each element of x becomes 0 with probability `rate`, else it is divided by 1 - rate (Srivastava et al.,
           2014). Recorded only if the tape is in mode train and the rate is not 0; otherwise the result is x itself.
           The gradient is dropout of the cotangent with the same random numbers.)",
      .inputs = {{"x", Accept::floating}},
      .attributes = {{"rate", AttributeType::number, "The probability that an element is dropped.", std::nullopt}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        probability(call.attributes, "rate");
        return {call.inputs[0]};
      },
      .gradient =
          +[](const GradientCall& call) {
            return record_call(call.inputs[0].tape(), call.op, {call.cotangent()}, call.attributes);
          },
      .expand =
          +[](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            const double keep = 1 - call.number("rate");
            const double scale = keep > 0 ? 1 / keep : 0;  // with infinity, zeros of the gradient would become NaN
            return Vars{where(bernoulli(call.tape, x.shape(), keep), x * scale, 0)};
          },
      .record = +[](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) -> Vars {
        if (probability(attributes, "rate") == 0 || tape.mode() != Mode::train) return inputs;
        return record_call(tape, self, inputs, attributes);
      },
      .random = true,
      .lowering = {.tile = tile_by_name}};
  return entry;
}
}  // namespace

Var uniform(Tape tape, const Shape& shape, double low, double high, std::optional<Dtype> dtype, Caller caller) {
  return apply(tape, uniform_op(), {},
               {{"shape", shape_value(shape)}, {"low", low}, {"high", high}, {"dtype", dtype_value(dtype)}}, caller)[0];
}
Var bernoulli(Tape tape, const Shape& shape, double p, Caller caller) {
  return apply(tape, bernoulli_op(), {}, {{"shape", shape_value(shape)}, {"p", p}}, caller)[0];
}
Var categorical(const Argument& logits) {
  return apply(categorical_op(), {logits})[0];
}
Var dropout(const Argument& x, double rate) {
  return apply(dropout_op(), {x}, {{"rate", rate}})[0];
}

void list_random(OpTable& table) {
  for (const Op* op : {&uniform_op(), &bernoulli_op(), &categorical_op(), &checked_weights_op(), &dropout_op()})
    table.add(*op);
}

}  // namespace xtape
