// Checks of calls, and the locations of calls in errors.
#include "tape/calls.hpp"

#include "base/messages/wording.hpp"

namespace xtape {

namespace {
bool takes(Accept accept, Dtype dtype) {
  switch (accept) {
    case Accept::floating:
      return is_floating(dtype);
    case Accept::integer:
      return is_integer(dtype);
    case Accept::mask:
      return dtype == Dtype::boolean;
    default:
      return true;
  }
}

bool is_of(const Attribute& value, AttributeType type) {
  switch (type) {
    case AttributeType::boolean:
      return std::holds_alternative<bool>(value);
    case AttributeType::integer:
      return std::holds_alternative<std::int64_t>(value);
    case AttributeType::number:
      return std::holds_alternative<double>(value);
    case AttributeType::element:
      return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    case AttributeType::text:
      return std::holds_alternative<std::string>(value);
    case AttributeType::integers:
      return std::holds_alternative<std::vector<std::int64_t>>(value);
    case AttributeType::dtype:
      return std::holds_alternative<Dtype>(value);
    default:
      return std::holds_alternative<NamedSizes>(value);
  }
}

void check_operands(const OpCall& call) {
  check_arity(call.op, call.inputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (const InputSpec& spec = spec_of(call.op, i); !takes(spec.accept, call.inputs[i].dtype))
      throw DtypeError("does not take " + to_string(call.inputs[i]) + " as '" + spec.name + "'");
  check_one_dtype(call);
}

void check_attributes(const Op& op, const Attributes& attributes) {
  std::vector<std::string> names;
  for (const AttributeSpec& spec : op.attributes) {
    names.push_back(spec.name);
    const Attribute* value = attributes.find(spec.name);
    if (value == nullptr) throw Error("attribute '" + spec.name + "' is missing: " + spec.doc);
    if (!is_of(*value, spec.type))
      throw Error("attribute '" + spec.name + "' takes " + name_of(spec.type) + ", not " + to_string(*value));
  }
  for (const auto& item : attributes.items())
    if (!contains(names, item.first))
      throw Error("has no attribute '" + item.first + "'" + did_you_mean(item.first, names));
}
}  // namespace

void check_arity(const Op& op, std::size_t count) {
  const auto needed = std::ranges::count_if(op.inputs, [](const InputSpec& spec) { return spec.arity == Arity::one; });
  const bool many = !op.inputs.empty() && op.inputs.back().arity == Arity::many;
  if (count >= static_cast<std::size_t>(needed) && (many || count <= op.inputs.size())) return;
  std::string list;
  for (const InputSpec& spec : op.inputs)
    list += (list.empty() ? "" : ", ") + spec.name +
            (spec.arity == Arity::many       ? "…"
             : spec.arity == Arity::optional ? "?"
                                             : "");
  throw Error("takes (" + list + "), got " + std::to_string(count) + (count == 1 ? " operand" : " operands"));
}

void check_one_dtype(const OpCall& call) {
  const ValueType* first = nullptr;
  for (std::size_t i = 0; i < call.inputs.size() && !call.op.inputs.empty(); ++i) {
    if (!promotes(spec_of(call.op, i).accept)) continue;
    if (first == nullptr) first = &call.inputs[i];
    if (first->dtype != call.inputs[i].dtype)
      throw DtypeError("operands " + to_string(*first) + " and " + to_string(call.inputs[i]) + " must have one dtype");
  }
}

std::vector<ValueType> checked_types(const OpCall& call) {
  check_operands(call);
  check_attributes(call.op, call.attributes);
  return call.op.shape(call);
}

void name_place(Error& error, const Caller& caller) {
  error.name_location(to_string(caller), caller.known() ? caller.file : "", caller.line);
}

void name_place(Error& error, const Site& site) {
  if (!site.scope || site.scope->where.empty()) {
    error.name_location(to_string(site), site.caller.known() ? site.caller.file : "", site.caller.line);
    return;
  }
  const std::string& where = site.scope->where;  // "gpt2.json, block 'attention'"
  error.name_location(to_string(site), where.substr(0, where.find(", ")),
                      site.line > 0 ? site.scope->shown(site.line) : 0);
}

}  // namespace xtape
