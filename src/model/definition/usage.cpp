#include <algorithm>
#include <array>
#include <set>

#include "model/definition/checks.hpp"

namespace xtape::model {

namespace {
class Usage {
 public:
  void note(const Module& module, const Line& line) {
    each_expression(line.value, [&](const Expression& expression) {
      if (expression.form == Form::name) add(module, expression.text);
      if (expression.form != Form::attribute) return;
      const std::vector<const Module*> found = owners(module, expression.children[0]);
      for (const Module* owner : found) add(*owner, expression.text);
      if (found.empty()) of_values_.insert(expression.text);  // of a module that is the value of a local
    });
  }
  void note(const Module& module, const Computation& computation) {
    for (const Line& line : computation.lines) note(module, line);
    for (const auto& result : computation.results) note(module, result.second);
  }

  void walk(const Module& module) {
    note(module, module.block->computation);
    for (const auto& update : module.block->updates) note(module, update.second);
    for (const ModuleList& list : module.modules)
      for (const auto& item : list.items) walk(*item);
  }

  void check(const Module& module) const {
    for (const Weight& weight : module.weights)
      if (!weight.path.empty() && module.block->from_file == nullptr && weights_.count(&weight) == 0 &&
          of_values_.count(weight.spec->name) == 0)
        fail(weight.spec->location, "weight '" + weight.path + "' is never used: no line mentions it");
    for (std::size_t i = 0; i < module.modules.size(); ++i) {
      const ModuleSpec& declared = module.block->modules[i];
      if (lists_.count(&module.modules[i]) == 0 && of_values_.count(declared.name) == 0)
        fail(declared.location, "module '" + (module.path.empty() ? "" : module.path + ".") + declared.name +
                                    "' is never used: no line mentions it");
      for (const auto& item : module.modules[i].items) check(*item);
    }
  }

 private:
  void add(const Module& module, const std::string& name) {
    if (const Weight* weight = module.find_weight(name)) weights_.insert(weight);
    if (const ModuleList* list = module.find_module(name)) lists_.insert(list);
  }

  /// Returns the modules to which an expression such as `h[0].attn` in `module` refers. Any index stands for all
  /// repeats.
  static std::vector<const Module*> owners(const Module& module, const Expression& expression) {
    std::vector<const Module*> found;
    const auto collect = [&](const Module& owner, const std::string& name) {
      if (const ModuleList* list = owner.find_module(name))
        for (const auto& item : list->items) found.push_back(item.get());
    };
    if (expression.form == Form::name) collect(module, expression.text);
    if (expression.form == Form::index) return owners(module, expression.children[0]);
    if (expression.form == Form::condition) {
      found = owners(module, expression.children[0]);
      for (const Module* owner : owners(module, expression.children[2])) found.push_back(owner);
    }
    if (expression.form == Form::attribute && expression.text == "all") return owners(module, expression.children[0]);
    if (expression.form == Form::attribute)
      for (const Module* owner : owners(module, expression.children[0])) collect(*owner, expression.text);
    return found;
  }

  std::set<const Weight*> weights_;
  std::set<const ModuleList*> lists_;
  std::set<std::string> of_values_;  ///< The attributes of expressions that refer to no module by its name.
};

using Names = std::set<std::string>;

void add_names(const Line& line, Names& names) {
  each_name(line.value, [&](const Expression& each) { names.insert(each.text); });
}

void check_inputs_of(const std::vector<Input>& inputs, const Computation& computation, const Block* block) {
  Names names, sizes;  // the names that lines mention; the sizes that used inputs declare
  for (const Line& line : computation.lines) add_names(line, names);
  for (const auto& result : computation.results) add_names(result.second, names);
  if (block != nullptr)
    for (const auto& update : block->updates) add_names(update.second, names);
  for (const Input& input : inputs)
    if (names.count(input.name) != 0)
      for (const Line& dim : input.dims) add_names(dim, sizes);
  for (const Input& input : inputs) {
    const bool gives_size = std::ranges::any_of(input.dims, [&](const Line& dim) {
      const std::string& size = dim.value.text;
      return dim.value.form == Form::name && names.count(size) != 0 && sizes.count(size) == 0;
    });
    if (names.count(input.name) == 0 && !gives_size && input.name[0] != '_')
      fail(input.location, "input '" + input.name + "' is never used: no line mentions it" +
                               (block != nullptr ? ", and it is not called '_" + input.name + "'" : ""));
  }
}

void check_file_inputs(const Definition& definition, std::set<const Definition*>& seen) {
  if (!seen.insert(&definition).second) return;
  for (const auto& used : definition.used) check_file_inputs(*used.file, seen);
  for (const auto& block : definition.blocks)
    if (block->from_file == nullptr) check_inputs_of(block->inputs, block->computation, block.get());
  for (const Function& function : definition.functions) {
    // The inputs of these functions are the arrays of the data, of which they may need only some.
    const auto is_named = [&](const char* name) { return function.name == name; };
    if (std::ranges::any_of(std::array{"loss", "plain_loss", "accuracy"}, is_named)) continue;
    check_inputs_of(function.inputs, function.computation, nullptr);
  }
}
}  // namespace

void check_inputs(const Definition& definition) {
  std::set<const Definition*> seen;
  check_file_inputs(definition, seen);
}

void check_usage(const Module& root, const Definition& definition) {
  Usage usage;
  usage.walk(root);
  for (const Function& function : definition.functions) usage.note(root, function.computation);
  usage.check(root);
}

void check_overrides(const std::string& path, const std::vector<std::pair<std::string, std::string>>& overrides) {
  if (overrides.empty()) return;
  const auto definition = read_definition(path);
  const std::set<std::string> used = check_names(*definition, builtin_ops());
  for (const auto& [name, text] : overrides)
    if (used.count(name) == 0 && definition->hyper_index.count(name) != 0)
      throw DefinitionError("hyper-parameter '" + name + "' of " + path + " cannot be set to " + text +
                            ": it has no effect, since no line mentions it");
}

}  // namespace xtape::model
