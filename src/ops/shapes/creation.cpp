// Ops that create arrays from attributes. Also positions and causal_mask, which use only the sizes of their input.
#include "ops/shapes/creation.hpp"

#include <algorithm>
#include <limits>

#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"

namespace xtape {

Shape shape_attribute(const OpCall& call) {
  const std::vector<std::int64_t>& sizes = call.integers("shape");
  return {sizes.begin(), sizes.end()};
}

ValueType drawn_type(const OpCall& call) {
  const auto dtype = call.get<Dtype>("dtype");
  if (!is_floating(dtype)) throw DtypeError(std::string("draws float32 or float64, not ") + name_of(dtype));
  return {dtype, shape_attribute(call)};
}

Attribute shape_value(const Shape& shape) {
  return std::vector<std::int64_t>(shape.begin(), shape.end());
}

AttributeSpec float_dtype_spec(const std::string& doc) {
  return {"dtype", AttributeType::dtype, doc + " 'float' is the tape's default dtype.", std::string("float")};
}

Attribute dtype_value(const std::optional<Dtype>& dtype) {
  if (dtype) return *dtype;
  return std::string("float");
}

AttributeSpec shape_spec() {
  return {"shape", AttributeType::integers, "The shape of the result.", std::nullopt};
}

namespace {
std::vector<ValueType> typed_shape(const OpCall& call) {
  return {{call.get<Dtype>("dtype"), shape_attribute(call)}};
}

/// Defines an op whose kernel fills its output with one value.
Op filling(const char* name, const char* doc, Literal (*value)(const Attributes&)) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.attributes = {shape_spec(), float_dtype_spec("The dtype of the result.")};
  op.shape = typed_shape;
  op.lowering.kernel = kernel_by_name;
  op.expand = [value](const ExpandCall& call) {
    const ValueType& type = call.node.outputs[0];
    Tape tape = call.tape;
    return Vars{broadcast_to(tape.constant(value(call.attributes), type.dtype), type.shape)};
  };
  op.differentiable = false;
  return op;
}

}  // namespace

const Op& zeros_op() {
  static const Op entry = filling("zeros", "An array of zeros.", [](const Attributes&) { return Literal(0); });
  return entry;
}

namespace {
const Op& ones_op() {
  static const Op entry = filling("ones", "An array of ones.", [](const Attributes&) { return Literal(1); });
  return entry;
}

const Op& full_op() {
  static const Op entry = [] {
    Op op = filling("full", "An array with `value` everywhere.",
                    [](const Attributes& attributes) { return attributes.number("value"); });
    op.attributes.insert(op.attributes.begin() + 1,
                         {"value", AttributeType::element, "The value of all elements.", std::nullopt});
    op.shape = +[](const OpCall& call) {
      call.element("value", call.get<Dtype>("dtype"));
      return typed_shape(call);
    };
    return op;
  }();
  return entry;
}

const Op& iota_op() {
  static const Op entry{.name = "iota",
                        .doc = "An array in which each element is its index along `axis`.",
                        .attributes = {shape_spec(),
                                       {"axis", AttributeType::integer,
                                        "The axis along which the elements count from 0.", std::int64_t{0}},
                                       {"dtype", AttributeType::dtype, "The dtype of the result.", Dtype::int64}},
                        .shape =
                            +[](const OpCall& call) {
                              const std::vector<ValueType> types = typed_shape(call);
                              const std::size_t axis = normal_axis(call.integer("axis"), types[0].shape.size());
                              if (types[0].dtype == Dtype::boolean)
                                throw DtypeError("the dtype must be a number, got bool");
                              require_fits(std::max<std::int64_t>(1, types[0].shape[axis]) - 1, types[0].dtype,
                                           "the last index");
                              return types;
                            },
                        .differentiable = false,
                        .lowering = {.kernel = kernel_by_name}};
  return entry;
}

const Op& eye_op() {
  static const Op entry{.name = "eye",
                        .doc = "A matrix with ones on its diagonal and zeros elsewhere.",
                        .attributes = {{"rows", AttributeType::integer, "The number of rows.", std::nullopt},
                                       {"columns", AttributeType::integer,
                                        "The number of columns; -1 for as many as rows.", std::int64_t{-1}},
                                       float_dtype_spec("The dtype of the result.")},
                        .shape = +[](const OpCall& call) -> std::vector<ValueType> {
                          const std::int64_t rows = call.integer("rows"), columns = call.integer("columns");
                          if (rows < 0 || columns < -1)
                            throw ShapeError("sizes must not be negative, got " + std::to_string(rows) + " rows and " +
                                             std::to_string(columns) + " columns");
                          return {{call.get<Dtype>("dtype"), {rows, columns == -1 ? rows : columns}}};
                        },
                        .expand =
                            +[](const ExpandCall& call) {
                              const ValueType& type = call.node.outputs[0];
                              const Var down = iota(call.tape, {type.shape[0], 1}, 0);
                              const Var across = iota(call.tape, {1, type.shape[1]}, 1);
                              return Vars{cast(down == across, type.dtype)};
                            },
                        .differentiable = false,
                        .lowering = {.kernel = kernel_by_name}};
  return entry;
}

/// How to record an op on positions: for t positions starting at 0, and for t positions that follow a past.
struct PlacesMeaning {
  std::function<Var(const Tape&, std::int64_t t, const Attributes&)> from_start;
  std::function<Var(const Var& past, std::int64_t t, const Attributes&)> from_past;
};

/// Defines an op that uses only the size of its argument along an axis and, in mode predict, the argument's past. It is
/// recorded as `meaning`. `more` are the attributes besides the axis.
Op of_length(const char* name, const char* doc, std::function<ValueType(std::int64_t)> type,
             const PlacesMeaning& meaning, const std::vector<AttributeSpec>& more = {}) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"tokens", Accept::any}};
  op.attributes = {
      {"axis", AttributeType::integer, "The axis of the argument that has the positions.", std::int64_t{-1}}};
  op.attributes.insert(op.attributes.end(), more.begin(), more.end());
  op.shape = [type = std::move(type)](const OpCall& call) -> std::vector<ValueType> {
    return {type(call.shape(0)[normal_axis(call.integer("axis"), call.shape(0).size())])};
  };
  op.expand = [meaning](const ExpandCall& call) {
    const Attributes& attributes = call.attributes;
    return Vars{meaning.from_start(call.tape, call.inputs[0].size(attributes.get<std::int64_t>("axis")), attributes)};
  };
  op.record = [meaning](Tape& tape, const Op&, const Vars& inputs, const Attributes& attributes) {
    const Var& tokens = inputs[0];
    const std::size_t axis = normal_axis(attributes.get<std::int64_t>("axis"), tokens.rank());
    const Var past = tape.past_of(tokens);
    if (past.empty()) return Vars{meaning.from_start(tape, tokens.shape()[axis], attributes)};
    if (axis == 0 || tokens.size(0) != past.size(0))
      throw ShapeError("tokens that continue " + std::to_string(past.size(0)) +
                       " rows must have the rows along axis 0 " + "and the positions along another axis; got " +
                       to_string(tokens.shape()) + " and axis " + std::to_string(axis));
    return Vars{meaning.from_past(past, tokens.shape()[axis], attributes)};
  };
  op.differentiable = false;
  return op;
}

const Op& positions_op() {
  static const Op entry =
      of_length("positions",
                "Returns int64 [t]: 0, 1, 2 … t - 1, where t is the size of the argument along `axis`. The values of "
                "the argument are not used. Recorded as iota. In mode predict, if the argument has a past, returns "
                "int64 [b, t], with past[row], past[row] + 1 … in each row.",
                [](std::int64_t t) {
                  return ValueType{Dtype::int64, {t}};
                },
                {[](const Tape& tape, std::int64_t t, const Attributes&) { return iota(tape, {t}); },
                 [](const Var& past, std::int64_t t, const Attributes&) {
                   return reshape(past, {past.size(0), 1}) + iota(past.tape(), {1, t}, 1);
                 }});
  return entry;
}

/// Returns true for keys after a query. With a window, also returns true for keys that are at least `window` positions
/// before a query. A window of all keys hides no earlier key.
Var hidden_keys(const Var& keys, const Var& queries, const Attributes& attributes) {
  const auto window = attributes.get<std::int64_t>("window");
  if (window < 0) throw Error("window must be at least 1, or 0 for no window; got " + std::to_string(window));
  const Var later = keys > queries;
  return window == 0 || window >= keys.size(-1) ? later : later | (keys <= queries - window);
}

const Op& causal_mask_op() {
  static const Op entry = of_length(
      "causal_mask",
      "Returns bool [t, t], true where the second index is larger than the first: a position cannot see later "
      "positions. With a window, position i sees only the positions i - window + 1 … i. t is the size of the argument "
      "along `axis`; the values of the argument are not used. Recorded as a comparison of iotas. In mode predict, if "
      "the argument has a past, returns bool [b, 1, t, capacity], for queries at the positions past[row], past[row] + "
      "1 … and for cached keys. The mask is also true at positions that a cache does not hold yet.",
      [](std::int64_t t) {
        return ValueType{Dtype::boolean, {t, t}};
      },
      {[](const Tape& tape, std::int64_t t, const Attributes& attributes) {
         return hidden_keys(iota(tape, {1, t}, 1), iota(tape, {t, 1}, 0), attributes);
       },
       [](const Var& past, std::int64_t t, const Attributes& attributes) {
         const Tape tape = past.tape();
         const Var queries = reshape(past, {past.size(0), 1, 1, 1}) + iota(tape, {1, 1, t, 1}, 2);
         return hidden_keys(iota(tape, {1, 1, 1, tape.capacity()}, 3), queries, attributes);
       }},
      {{"window", AttributeType::integer,
        "The number of positions that a position sees, including itself. 0 means itself and all earlier positions.",
        std::int64_t{0}}});
  return entry;
}
}  // namespace

Var zeros(Tape tape, const Shape& shape, std::optional<Dtype> dtype, Caller caller) {
  return apply(tape, zeros_op(), {}, {{"shape", shape_value(shape)}, {"dtype", dtype_value(dtype)}}, caller)[0];
}
Var ones(Tape tape, const Shape& shape, std::optional<Dtype> dtype, Caller caller) {
  return apply(tape, ones_op(), {}, {{"shape", shape_value(shape)}, {"dtype", dtype_value(dtype)}}, caller)[0];
}
Var full(Tape tape, const Shape& shape, const Literal& value, std::optional<Dtype> dtype, Caller caller) {
  const Attributes attributes{
      {"shape", shape_value(shape)}, {"value", attribute_of(value)}, {"dtype", dtype_value(dtype)}};
  return apply(tape, full_op(), {}, attributes, caller)[0];
}
Var zeros_like(const Argument& x) {
  return at_place(x.caller(), [&] { return zeros(x.tape(), x.shape(), x.dtype(), x.caller()); });
}
Var ones_like(const Argument& x) {
  return at_place(x.caller(), [&] { return ones(x.tape(), x.shape(), x.dtype(), x.caller()); });
}
Var iota(Tape tape, const Shape& shape, std::int64_t axis, Dtype dtype, Caller caller) {
  return apply(tape, iota_op(), {}, {{"shape", shape_value(shape)}, {"axis", axis}, {"dtype", dtype}}, caller)[0];
}
Var eye(Tape tape, std::int64_t rows, std::int64_t columns, std::optional<Dtype> dtype, Caller caller) {
  return apply(tape, eye_op(), {}, {{"rows", rows}, {"columns", columns}, {"dtype", dtype_value(dtype)}}, caller)[0];
}
Var positions(const Argument& tokens, std::int64_t axis) {
  return apply(positions_op(), {tokens}, {{"axis", axis}})[0];
}
Var causal_mask(const Argument& tokens, std::int64_t axis, std::int64_t window) {
  return apply(causal_mask_op(), {tokens}, {{"axis", axis}, {"window", window}})[0];
}

void list_creation(OpTable& table) {
  for (const Op* op : {&zeros_op(), &ones_op(), &full_op(), &iota_op(), &eye_op(), &positions_op(), &causal_mask_op()})
    table.add(*op);
}

}  // namespace xtape
