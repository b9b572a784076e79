// The ops input, parameter and constant, and the table of ops.
#include "base/messages/wording.hpp"
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

}  // namespace xtape
