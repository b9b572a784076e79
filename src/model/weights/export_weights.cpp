// The weights of a model as its blocks export them.
#include <functional>
#include <set>

#include "model/language/interpreter.hpp"
#include "model/recording/model_data.hpp"

namespace xtape {

namespace {
/// Records the "export" expressions of every module. The results are keyed by the paths of the weights.
class Exports {
 public:
  Exports(const model::ModelContext& context, Tape tape) : interpreter_(context, std::move(tape)) {}

  void record(const model::Module& module) {
    for (const auto& [name, line] : module.block->exports) {
      const model::Value value = interpreter_.evaluate(line, {module.block->home, &module, false, {}});
      if (value.is_none()) continue;
      const auto* var = value.as<Var>();
      if (var == nullptr) line.fail(line.value.column, "an array belongs here, not " + model::describe(value));
      results_.add(module.path + "." + name, *var);
    }
    for (const model::ModuleList& list : module.modules)
      for (const auto& item : list.items) record(*item);
  }
  const NamedVars& results() const { return results_; }

 private:
  model::Interpreter interpreter_;
  NamedVars results_;
};
}  // namespace

Store Model::exported_weights() const {
  Tape tape(Mode::eval);
  tape.set_default_dtype(dtype());
  tape.set_ops(*data_->context.ops);
  Exports exports(data_->context, tape);
  exports.record(*data_->root);
  std::set<std::string> merged;  // the weights that the expressions read
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (tape.node(i).op == &parameter_op()) merged.insert(tape.node(i).name);
  Store weights;
  for (const Store::Entry& entry : this->weights())
    if (merged.count(entry.name) == 0 && !exports.results().has(entry.name))
      weights.add(entry.name, Array(entry.value));
  for (const auto& [name, var] : exports.results()) weights.add(name, evaluate(var));
  return weights;
}

}  // namespace xtape
