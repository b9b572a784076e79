// The ops input, parameter and constant, and the table of ops.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "tape/calls.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
Op source(const std::string& name, const std::string& doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.differentiable = false;
  return op;
}
}  // namespace

const Op& input_op() {
  static const Op entry = source("input", "A value that is fed at every play.");
  return entry;
}

const Op& parameter_op() {
  static const Op entry = source("parameter", "An array of a store. Every play reads it from the store's memory.");
  return entry;
}

const Op& constant_op() {
  static const Op entry = source("constant", "An array that never changes.");
  return entry;
}

const char* name_of(AttributeType type) {
  switch (type) {
    case AttributeType::boolean:
      return "true or false";
    case AttributeType::integer:
      return "an integer";
    case AttributeType::number:
    case AttributeType::element:
      return "a number";
    case AttributeType::text:
      return "a text";
    case AttributeType::integers:
      return "integers";
    case AttributeType::dtype:
      return "a dtype";
    default:
      return "named sizes";
  }
}

std::string to_string(const Caller& caller) {
  if (!caller.known()) return "";
  const std::string file = caller.file;
  return file.substr(file.find_last_of("/\\") + 1) + ", line " + std::to_string(caller.line);
}

std::string to_string(const Site& site) {
  if (!site.scope) return to_string(site.caller);
  const Scope& scope = *site.scope;
  const std::string line = site.line > 0 ? ", line " + std::to_string(scope.shown(site.line)) : "";
  const std::string place = scope.where.empty() ? to_string(site.caller) : scope.where + line;
  if (scope.path.empty() || place.empty()) return scope.path + place;
  return scope.path + " (" + place + ")";
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

void OpTable::check(const Op& op) const {
  const auto refuse = [&](const std::string& why) { throw Error("op '" + op.name + "' " + why); };
  if (op.name.empty()) throw Error("an op needs a name");
  if (find_recorded(op.name) != nullptr) refuse("is already in the table");
  if (op.doc.empty()) refuse("needs a doc");
  if (!op.shape) refuse("needs a shape rule");
  if (!op.lowering.runs() && !op.expand) refuse("needs a kernel, a tile, a view or an expand");
}

void OpTable::add(const Op& op) {
  check(op);
  ops_.emplace(op.name, &op);
}

void OpTable::add_with_body(const Op& op) {
  check(op);
  with_body_.emplace(op.name, &op);
}

const Op* OpTable::find_recorded(const std::string& name) const {
  if (const Op* op = find(name)) return op;
  if (const auto found = with_body_.find(name); found != with_body_.end()) return found->second;
  for (const Op* source : {&input_op(), &parameter_op(), &constant_op()})
    if (name == source->name) return source;
  return nullptr;
}

void OpTable::add(FusionRule rule) {
  const auto refuse = [&](const std::string& why) { throw Error("rule '" + rule.name + "' " + why); };
  if (rule.op == nullptr || find(rule.op->name) != rule.op) refuse("is of an op that is not in the table");
  if (!rule.pattern && !rule.op->expand) refuse("needs a pattern: op '" + rule.op->name + "' has no expand");
  if (rule.inputs.empty()) refuse("needs a sample of inputs");
  rule.compiled = std::make_shared<FusionRule::Compiled>();
  rules_.push_back(std::move(rule));
}

const Op* OpTable::find(const std::string& name) const {
  const auto found = ops_.find(name);
  return found == ops_.end() ? nullptr : found->second;
}

const Op& OpTable::at(const std::string& name) const {
  if (const Op* op = find(name)) return *op;
  std::vector<std::string> names;
  for (const auto& row : ops_) names.push_back(row.first);
  throw Error("unknown op '" + name + "'" + did_you_mean(name, names));
}

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

}  // namespace xtape
