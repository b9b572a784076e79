// Records a call. Completes the attributes, promotes dtypes, checks shapes and appends the node.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns `value` converted to `type`, or nothing if this is not possible. For the type `number`, an integer becomes a
/// double. For `element`, an integer becomes a double if the conversion is exact. For `integers`, an integer becomes a
/// list of one element. For `dtype`, a name becomes a Dtype.
std::optional<Attribute> coerced(const Attribute& value, AttributeType type, Dtype default_dtype) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  switch (type) {
    case AttributeType::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case AttributeType::integer:
      if (integer != nullptr) return value;
      break;
    case AttributeType::number:
      if (std::holds_alternative<double>(value)) return value;
      if (integer != nullptr) return static_cast<double>(*integer);
      break;
    case AttributeType::element: {
      if (std::holds_alternative<double>(value)) return value;
      if (integer == nullptr) break;
      const auto real = static_cast<double>(*integer);
      if (Literal(real).fits(Dtype::int64) && static_cast<std::int64_t>(real) == *integer) return real;
      return value;
    }
    case AttributeType::text:
      if (std::holds_alternative<std::string>(value)) return value;
      break;
    case AttributeType::integers:
      if (std::holds_alternative<std::vector<std::int64_t>>(value)) return value;
      if (integer != nullptr) return std::vector<std::int64_t>{*integer};
      break;
    case AttributeType::dtype:
      if (std::holds_alternative<Dtype>(value)) return value;
      if (const auto* name = std::get_if<std::string>(&value)) {
        if (*name == "float") return default_dtype;
        if (*name == "int") return Dtype::int64;
        try {
          return dtype_named(*name);
        } catch (const DtypeError& error) {
          throw DtypeError(error.what() + std::string("; 'float' is the default float dtype, 'int' is int64"));
        }
      }
      break;
    case AttributeType::named_sizes:
      if (std::holds_alternative<NamedSizes>(value)) return value;
      break;
  }
  return std::nullopt;
}

/// Returns `given` with defaults added and all values converted to the types of `op`. Throws Error if an attribute is
/// unknown, missing or of another type.
Attributes completed(const Op& op, const Attributes& given, Dtype default_dtype) {
  std::vector<std::string> names;
  for (const AttributeSpec& spec : op.attributes) names.push_back(spec.name);
  for (const auto& item : given.items())
    if (!contains(names, item.first))
      throw Error("has no attribute '" + item.first + "'" + did_you_mean(item.first, names));
  Attributes result;
  for (const AttributeSpec& spec : op.attributes) {
    const Attribute* value = given.find(spec.name);
    if (value == nullptr && !spec.initial) throw Error("attribute '" + spec.name + "' must be given: " + spec.doc);
    const std::optional<Attribute> fitting =
        coerced(value != nullptr ? *value : *spec.initial, spec.type, default_dtype);
    if (!fitting)
      throw Error("attribute '" + spec.name + "' takes " + name_of(spec.type) + ", got " +
                  to_string(value != nullptr ? *value : *spec.initial));
    if (const auto* dtype = std::get_if<Dtype>(&*fitting); dtype != nullptr && is_block(*dtype))
      throw DtypeError("attribute '" + spec.name + "' cannot be " + name_of(*dtype) +
                       ", as which only weights are stored");
    result.set(spec.name, *fitting);
  }
  return result;
}

/// Returns the dtype to which operands that are promoted together are converted. It is the highest dtype of the vars in
/// the order bool, int32, int64, bfloat16 or float16, float32. bfloat16 and float16 together give float32. int8 counts
/// as int32, and a block format as float32. A whole literal raises bool to int64. A literal with a fraction, or an
/// input that accepts only floats, raises integers and bool to `default_dtype`. Throws DtypeError for float64 together
/// with another float dtype.
Dtype common_dtype(const Op& op, const std::vector<Operand>& operands, Dtype default_dtype) {
  std::optional<Dtype> common;
  bool fraction = false;
  bool whole = false;
  bool floating = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Accept accept = spec_of(op, i).accept;
    if (!promotes(accept)) continue;
    floating |= accept == Accept::floating;
    if (operands[i].is_literal()) {
      (operands[i].literal().is_whole() ? whole : fraction) = true;
      continue;
    }
    const Dtype own = operands[i].var().dtype();
    const Dtype dtype = own == Dtype::int8 ? Dtype::int32 : is_block(own) ? Dtype::float32 : own;
    if (!common) {
      common = dtype;
      continue;
    }
    if (is_floating(dtype) && is_floating(*common) && (dtype == Dtype::float64) != (*common == Dtype::float64))
      throw DtypeError(std::string("mixes ") + name_of(*common) + " and " + name_of(dtype) + ": cast one of them");
    const auto rank = [](Dtype d) {
      return d == Dtype::boolean ? 0 : d == Dtype::int32 ? 1 : d == Dtype::int64 ? 2 : is_half(d) ? 3 : 4;
    };
    if (is_half(dtype) && is_half(*common) && dtype != *common) common = Dtype::float32;
    if (rank(dtype) > rank(*common)) common = dtype;
  }
  if (!common) common = fraction ? default_dtype : Dtype::int64;
  if (*common == Dtype::boolean && whole) common = Dtype::int64;
  if (!is_floating(*common) && (fraction || floating)) common = default_dtype;
  return *common;
}

/// Returns the operands as vars. Literals become constants, and operands that are promoted together are cast to one
/// dtype.
Vars promoted(Tape& tape, const Op& op, const std::vector<Operand>& operands) {
  const Dtype common = common_dtype(op, operands, tape.default_dtype());
  Vars inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const InputSpec& spec = spec_of(op, i);
    if (operands[i].is_literal()) {
      const Dtype dtype = promotes(spec.accept)            ? common
                          : spec.accept == Accept::integer ? Dtype::int64
                          : spec.accept == Accept::mask    ? Dtype::boolean
                                                           : tape.default_dtype();
      inputs.push_back(tape.constant(operands[i].literal(), dtype));
      continue;
    }
    const Var& var = operands[i].var();
    const auto refuse = [&](const char* wanted) {
      throw DtypeError("'" + spec.name + "' must be " + wanted + ", got " + to_string(var.type()));
    };
    if (spec.accept == Accept::integer && !is_integer(var.dtype())) refuse("an integer array");
    if (spec.accept == Accept::mask && var.dtype() != Dtype::boolean) refuse("a bool array");
    inputs.push_back(promotes(spec.accept) && var.dtype() != common ? cast(var, common) : var);
  }
  return inputs;
}

/// Returns the source location of the call: `caller` or, if it is unknown, the first known location of the operands.
Caller place_of(const std::vector<Operand>& operands, const Caller& caller) {
  if (caller.known()) return caller;
  const auto known = [](const Operand& operand) { return operand.caller().known(); };
  const auto found = std::ranges::find_if(operands, known);
  return found == operands.end() ? Caller{} : found->caller();
}

std::vector<Shape> shapes_of(const std::vector<Operand>& operands) {
  std::vector<Shape> shapes;
  for (const Operand& operand : operands) {
    const bool stale = !operand.is_literal() && operand.var().empty();
    shapes.push_back(operand.is_literal() || stale ? Shape{} : operand.var().shape());
  }
  return shapes;
}

/// Runs `body` and adds the op, the operands' shapes and the source location to its errors.
template <class Body>
Vars naming(const Op& op, const std::vector<Operand>& operands, const Caller& caller, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    error.name_op(op.name);
    if (dynamic_cast<const HandleError*>(&error) == nullptr) error.set_shapes(shapes_of(operands));
    name_place(error, caller);
    throw;
  }
}
}  // namespace

namespace {
/// Rounds the attributes that are elements of half-precision results. Players may compute the call in float32, where
/// they would round to float32 first, and from there perhaps to another half.
void round_elements(Node& node) {
  const Dtype dtype = node.outputs[0].dtype;
  for (const AttributeSpec& spec : node.op->attributes)
    if (spec.type == AttributeType::element) {
      const Literal value = node.attributes.number(spec.name);
      const float nearest = dtype == Dtype::bfloat16 ? value.as<bfloat16>() : static_cast<float>(value.as<float16>());
      node.attributes.set(spec.name, static_cast<double>(nearest));
    }
}
}  // namespace

Vars record_call(Tape tape, const Op& op, const Vars& inputs, const Attributes& attributes,
                 std::shared_ptr<const Tape> body) {
  if (op.is_source()) throw Error("is a source, which the tape records: Tape::input, parameter, constant");
  check_arity(op, inputs.size());
  OpCall call{{attributes}, op, {}, {}, body.get(), {}};
  for (const Var& input : inputs) {
    if (input.tape() != tape) throw HandleError("an input is of another tape");
    call.inputs.push_back(input.type());
  }
  check_one_dtype(call);
  Node node;
  node.op = &op;
  call.outputs = op.shape(call);
  require_readable_blocks(call);
  node.outputs = call.outputs;
  node.attributes = attributes;
  if (!node.outputs.empty() && is_half(node.outputs[0].dtype)) round_elements(node);
  node.body = std::move(body);
  for (const Var& input : inputs) node.inputs.push_back(input.id());
  const std::size_t count = node.outputs.size();
  const ValueId id = tape.append(std::move(node));
  Vars outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(tape.var({id.node, static_cast<std::int32_t>(i)}));
  return outputs;
}

Vars apply(Tape tape, const Op& op, const std::vector<Operand>& operands, const Attributes& attributes, Caller caller) {
  const Caller place = place_of(operands, caller);
  return naming(op, operands, place, [&] {
    for (const Operand& operand : operands)
      if (!operand.is_literal() && operand.var().tape() != tape)
        throw HandleError("its operands belong to different tapes");
    check_arity(op, operands.size());
    const Attributes complete = completed(op, attributes, tape.default_dtype());
    const auto in_call = tape.in_call(&op, place);
    const Rollback rollback(tape);
    const Vars inputs = promoted(tape, op, operands);
    Vars outputs = op.record ? op.record(tape, op, inputs, complete) : record_call(tape, op, inputs, complete);
    if (outputs.empty()) throw Error("has no result: its shape rule returns no type, or its function `record` no var");
    if (op.derivative.kept > 0) outputs.resize(op.outputs.size() - op.derivative.kept);
    return outputs;
  });
}

Vars apply(const Op& op, const std::vector<Operand>& operands, const Attributes& attributes, Caller caller) {
  const auto is_var = [](const Operand& operand) { return !operand.is_literal(); };
  const auto first = std::ranges::find_if(operands, is_var);
  const Caller place = place_of(operands, caller);
  return naming(op, operands, place, [&] {
    if (operands.empty()) throw HandleError("at least one operand is needed");
    if (first == operands.end())
      throw HandleError("at least one operand must be a var; to record a call of literals, pass the tape");
    return apply(first->var().tape(), op, operands, attributes, place);
  });
}

Var GradientCall::cotangent(std::size_t output) const {
  return cotangents[output].empty() ? zeros_like(outputs[output]) : cotangents[output];
}

}  // namespace xtape
