// Checks the names in every line of a definition, before anything is made of it.
#include <algorithm>
#include <set>

#include "check_sizes.hpp"
#include "definition.hpp"
#include "nearest.hpp"
#include "value.hpp"
#include "xtape/op.hpp"

namespace xtape::model {

namespace {
using Names = std::set<std::string>;

/// The names of one block or function, line by line.
class Checker {
 public:
  Checker(const Definition& home, const Block& block, const OpTable& ops) : block_(block), ops_(ops) {
    for (const Parameter& each : home.hyper) known_.insert(each.name);
    for (const Parameter& each : block.parameters) known_.insert(each.name);
    sizes_ = known_;
    for (const WeightSpec& each : block.weights) known_.insert(each.name);
    for (const PartSpec& each : block.parts) {
      known_.insert(each.name);
      parts_.insert(each.name);
    }
  }

  /// Sizes and settings are known without a tape: parameters, hyper-parameters and what is bound around them.
  void size(const Line& line, const Names& more) {
    more_ = &more;
    expression(line);
    more_ = nullptr;
  }

  void computation(const std::vector<Input>& inputs, const Computation& computation,
                   const std::vector<Function>* functions) {
    functions_ = functions;
    check_sizes(inputs, computation, sizes_);
    for (const Input& input : inputs) {
      known_.insert(input.name);
      for (const Line& dim : input.dims)
        if (dim.value.form == Form::name) known_.insert(dim.value.text);
    }
    for (const Input& input : inputs)
      for (const Line& dim : input.dims) expression(dim);
    for (const Line& line : computation.lines) {
      expression(line);
      for (const Target& target : line.targets) assign(target, line);
    }
    for (const auto& result : computation.results) expression(result.second);
  }

  const Names& mentioned() const { return mentioned_; }

 private:
  void expression(const Line& line) {
    line_ = &line;
    visit(line.value);
  }

  bool knows(const std::string& name) const {
    return more_ == nullptr ? known_.count(name) != 0 : sizes_.count(name) != 0 || more_->count(name) != 0;
  }

  void assign(const Target& target, const Line& line) {
    const auto taken = [&](const auto& list, const char* kind) {
      for (const auto& each : list)
        if (each.name == target.name)
          line.fail(target.column, "'" + target.name + "' is a " + kind + " here and cannot be assigned to");
    };
    taken(block_.weights, "weight");
    taken(block_.parts, "part");
    taken(block_.parameters, "parameter");
    known_.insert(target.name);
  }

  void visit(const Expression& expression) {
    if (expression.form == Form::name) {
      mentioned_.insert(expression.text);
      if (!knows(expression.text)) {
        Names known = more_ == nullptr ? known_ : sizes_;
        if (more_ != nullptr) known.insert(more_->begin(), more_->end());
        line_->fail(expression.column,
                    "unknown name '" + expression.text + "'" + did_you_mean(expression.text, list_of(known)));
      }
      return;
    }
    if (expression.form == Form::call && expression.children[0].form == Form::name) {
      callee(expression);
      for (std::size_t i = 1; i < expression.children.size(); ++i) visit(expression.children[i]);
    } else {
      for (const Expression& child : expression.children) visit(child);
    }
    for (const Keyword& each : expression.keywords) visit(each.value);
  }

  void callee(const Expression& call) {
    const Expression& callee = call.children[0];
    const std::string& name = callee.text;
    mentioned_.insert(name);
    if (parts_.count(name) != 0) return;
    std::vector<std::string> known = list_of(parts_);
    if (functions_ != nullptr)
      for (const Function& each : *functions_) {
        if (each.name == name) return;
        known.push_back(each.name);
      }
    if (const Op* op = ops_.find(name)) {
      keywords(*op, call);
      return;
    }
    if (is_number_function(name) || is_requirement(call) || is_scan(call)) return;
    for (const auto& row : ops_.rows()) known.push_back(row.first);
    line_->fail(callee.column, "there is no part, function or op '" + name + "'" + did_you_mean(name, known));
  }

  void keywords(const Op& op, const Expression& call) {
    std::vector<std::string> known;
    for (const InputSpec& each : op.inputs) known.push_back(each.name);
    for (const AttributeSpec& each : op.attributes) {
      if (each.type == AttributeType::named_sizes) return;
      known.push_back(each.name);
    }
    for (const Keyword& each : call.keywords)
      if (std::find(known.begin(), known.end(), each.name) == known.end())
        line_->fail(each.column,
                    "op '" + op.name + "' has no attribute '" + each.name + "'" + did_you_mean(each.name, known));
  }

  static std::vector<std::string> list_of(const Names& names) { return {names.begin(), names.end()}; }

  const Block& block_;
  const OpTable& ops_;
  const Line* line_ = nullptr;
  const std::vector<Function>* functions_ = nullptr;
  const Names* more_ = nullptr;  ///< While a size is looked at: what may be named beside the sizes.
  Names known_, sizes_, parts_, mentioned_;
};

void check_part(Checker& checker, const PartSpec& part) {
  const Names index = {"index"};
  const Names& more = part.repeat ? index : Names{};
  for (const auto* line : {&part.repeat, &part.when})
    if (*line) checker.size(**line, {});
  if (part.choice) checker.size(*part.choice, more);
  for (const auto& [name, line] : part.settings) {
    // What may be the name of a given part is looked at when parts are made.
    if (line.value.form != Form::name) checker.size(line, more);
  }
  for (const PartSpec& given : part.parts) check_part(checker, given);
}

void check_shared(Checker& checker, const Block& block) {
  for (const Parameter& each : block.parameters)
    if (each.initial) checker.size(*each.initial, {});
  for (const WeightSpec& weight : block.weights) {
    for (const Line& line : weight.shape) checker.size(line, {});
    if (weight.choice) checker.size(*weight.choice, {});
    for (const auto& [name, line] : weight.settings) checker.size(line, {});
    if (weight.when) checker.size(*weight.when, {});
  }
  for (const PartSpec& part : block.parts) check_part(checker, part);
}

void check_mentioned(const Block& block, const Names& mentioned) {
  for (const PartSpec& part : block.parts)
    if (mentioned.count(part.name) == 0)
      fail(part.place, "part '" + part.name + "' is never used: no line mentions it");
}
}  // namespace

namespace {
void check_file(const Definition& definition, const OpTable& ops, std::set<const Definition*>& seen) {
  if (!seen.insert(&definition).second) return;
  for (const auto& file : definition.used) check_file(*file, ops, seen);
  for (const auto& block : definition.blocks) {
    Checker checker(definition, *block, ops);
    check_shared(checker, *block);
    checker.computation(block->inputs, block->computation, nullptr);
    check_mentioned(*block, checker.mentioned());
  }
  if (definition.model == nullptr) return;
  Names mentioned;
  Checker shared(definition, *definition.model, ops);
  check_shared(shared, *definition.model);
  for (const Function& function : definition.functions) {
    Checker checker(definition, *definition.model, ops);
    checker.computation(function.inputs, function.computation, &definition.functions);
    mentioned.insert(checker.mentioned().begin(), checker.mentioned().end());
  }
  check_mentioned(*definition.model, mentioned);
}
}  // namespace

void check_names(const Definition& definition, const OpTable& ops) {
  std::set<const Definition*> seen;
  check_file(definition, ops, seen);
}

}  // namespace xtape::model
