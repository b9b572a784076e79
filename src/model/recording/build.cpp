// Creates a model's modules from its definition.
#include <algorithm>
#include <type_traits>

#include "base/arrays/elements.hpp"
#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"
#include "model/definition/checks.hpp"
#include "model/language/interpreter.hpp"
#include "model/language/visible_names.hpp"
#include "model/recording/model_data.hpp"
#include "model/weights/stored_weights.hpp"

namespace xtape::model {

namespace {
// the maximum number of elements of a weight; a larger number indicates a mistake in the shape
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t most_modules = 1 << 18;  // forty nested blocks of two modules would give 2^40

class Builder {
 public:
  explicit Builder(ModelContext& context) : context_(context), interpreter_(context) {}

  std::unique_ptr<Module> root() {
    const Definition& definition = *context_.definition;
    auto module = std::make_unique<Module>();
    module->block = definition.model.get();
    module->scopes.main = std::make_shared<const Scope>(Scope{"", definition.file + ", model"});
    fill(*module);
    interpreter_.check_asked_names();
    return module;
  }

 private:
  struct Context {
    const Module* module;  ///< The module whose block contains the declaration.
    Values locals;
  };

  Environment environment(const Context& context) const {
    return {context.module->block->home, context.module, false, context.locals};
  }

  void fill(Module& module) {
    for (const WeightSpec& spec : module.block->weights) module.weights.push_back(make_weight(module, spec));
    for (const ModuleSpec& spec : module.block->modules) {
      if (!spec.given) {
        module.modules.push_back(make_list(module, spec, spec, {&module, {}}));
        continue;
      }
      const GivenModule& given = module.given.at(spec.name);
      module.modules.push_back(make_list(module, spec, *given.spec, {given.giver, given.locals}));
    }
  }

  Weight make_weight(const Module& module, const WeightSpec& spec) {
    const Environment names{.home = module.block->home, .module = &module};
    Weight weight;
    weight.spec = &spec;
    weight.initialiser.name =
        spec.value ? module.block->file : chosen(spec.init, names, "an initialiser", initialiser_settings);
    if (spec.when && !interpreter_.flag(*spec.when, names)) return weight;
    std::int64_t count = 1;
    for (const Line& size : spec.shape) {
      weight.shape.push_back(interpreter_.integer(size, names));
      if (weight.shape.back() < 1)
        size.fail(size.value.column, "a size is at least 1, not " + std::to_string(weight.shape.back()));
      if (weight.shape.back() > most_elements / count)
        size.fail(size.value.column, "the weight would have more than 2^40 elements: " + to_string(weight.shape));
      count *= weight.shape.back();
    }
    if (spec.value) return from_file(module, std::move(weight));
    for (const auto& [known, initial] : *initialiser_settings(weight.initialiser.name))
      for (const auto& [name, line] : spec.settings)
        if (name == known) weight.initialiser.settings.emplace_back(name, interpreter_.number(line, names));
    weight.path = path_of(module, spec);
    Array array(context_.dtype, weight.shape);
    try {
      if (context_.initialise && matches_weight(weight.path, context_.initialised))
        initialise(array, weight.initialiser, context_.seed, weight.path);
    } catch (const ShapeError& error) {
      fail(spec.location, error.what());
    }
    context_.store.add(weight.path, array);
    return weight;
  }

  static std::string path_of(const Module& module, const WeightSpec& spec) {
    return module.path.empty() ? spec.name : module.path + "." + spec.name;
  }

  Weight from_file(const Module& module, Weight weight) {
    weight.path = path_of(module, *weight.spec);
    Array array(context_.dtype, weight.shape);
    if (context_.initialise) convert_floats(*weight.spec->value, array);
    context_.store.add(weight.path, array);
    return weight;
  }

  /// `declared` is the module's entry in the owner's block. It determines the name of the module. `spec` describes the
  /// module. `declared` and `spec` differ if the user of the block supplies the module.
  ModuleList make_list(const Module& owner, const ModuleSpec& declared, const ModuleSpec& spec,
                       const Context& context) {
    if (contains(making_, spec.identity))
      fail(spec.location, "module '" + spec.name + "' contains itself, through block '" + owner.block->name + "'");
    if (making_.size() == deepest)
      fail(spec.location,
           "modules are nested more than " + std::to_string(deepest) + " deep: '" + owner.path + "' has one more");
    constexpr std::size_t least_stack = 64 << 10;  // bytes of stack for one more level and an error
    if (stack_left() < least_stack)
      fail(spec.location, "module '" + spec.name + "' is nested too deeply for this thread's stack");
    making_.push_back(spec.identity);
    ModuleList list;
    list.spec = &spec;
    list.repeated = spec.repeat.has_value();
    const std::string path = owner.path.empty() ? declared.name : owner.path + "." + declared.name;
    if (!spec.when || interpreter_.flag(*spec.when, environment(context))) {
      const std::int64_t count = list.repeated ? interpreter_.integer(*spec.repeat, environment(context)) : 1;
      if (count < 0)
        spec.repeat->fail(spec.repeat->value.column, "a module repeats 0 or more times, not " + std::to_string(count));
      if (count > 100000) spec.repeat->fail(spec.repeat->value.column, "a module repeats at most 100000 times");
      for (std::int64_t i = 0; i < count; ++i) {
        Context inner = context;
        if (list.repeated) inner.locals["index"] = i;
        list.items.push_back(make_module(list.repeated ? path + "." + std::to_string(i) : path, spec, inner));
      }
    }
    making_.pop_back();
    return list;
  }

  /// Returns the name of a block or an initialiser that an expression chooses. `exists` says whether there is one.
  template <class Exists>
  std::string chosen(const Line& choice, const Environment& names, const std::string& what, const Exists& exists) {
    const Value value = interpreter_.evaluate(choice, names);
    const auto* name = value.as<std::string>();
    if (name != nullptr && exists(*name)) return *name;
    const auto known = what == "a block" ? names.home->block_names() : initialiser_names();
    if (name != nullptr)
      choice.fail(choice.value.column, "'" + *name + "' is not the name of " + what + did_you_mean(*name, known));
    choice.fail(choice.value.column,
                "the name of " + what + " belongs here, not " + describe(value) +
                    (contains(known, choice.text) ? ": a parameter hides " + what + " of its name" : ""));
  }

  std::unique_ptr<Module> make_module(const std::string& path, const ModuleSpec& spec, const Context& context) {
    if (++count_ > most_modules)
      fail(spec.location,
           "the model has more than " + std::to_string(most_modules) + " modules: '" + path + "' exceeds this limit");
    auto module = std::make_unique<Module>();
    const auto find = [&](const std::string& name) { return spec.home->find_block(name); };
    const Block& block =
        *context_.definition->in_place_of(find(chosen(spec.block, environment(context), "a block", find)));
    module->path = path;
    module->block = &block;
    module->scopes = scopes_of(context_, path, block.location, "block '" + block.name + "'", block.computation);
    give_modules(*module, spec, context);
    set_parameters(*module, spec, context);
    inside(*module, spec, [&] { fill(*module); });
    return module;
  }

  /// Runs `body`, which evaluates lines of the module's block. Adds to each error the place at which the module is
  /// declared.
  template <class Body>
  static std::invoke_result_t<Body> inside(const Module& module, const ModuleSpec& spec, const Body& body) {
    try {
      return body();
    } catch (const DefinitionError& error) {
      throw called_from(error, spec.location, "module '" + module.path + "'");
    }
  }

  static bool takes_module(const Block& block, const std::string& name) {
    return std::ranges::any_of(block.modules, [&](const ModuleSpec& each) { return each.given && each.name == name; });
  }

  void give_modules(Module& module, const ModuleSpec& spec, const Context& context) {
    const Block& block = *module.block;
    for (const ModuleSpec& given : spec.modules) {
      if (!takes_module(block, given.name))
        fail(given.location, "block '" + block.name + "' takes no module '" + given.name + "'" +
                                 did_you_mean(given.name, settable(block)));
      module.given[given.name] = {&given, context.module, context.locals};
    }
    for (const auto& [name, line] : spec.settings)
      if (takes_module(block, name)) module.given[name] = handed_on(name, line, context);
    for (const ModuleSpec& each : block.modules)
      if (each.given && module.given.count(each.name) == 0)
        fail(spec.location, "block '" + block.name + "' must be given its module '" + each.name + "': \"" + each.name +
                                "\": {\"block\": …}");
  }

  /// Returns the module that `line` passes on to another block. It was supplied to the block of `line`.
  GivenModule handed_on(const std::string& name, const Line& line, const Context& context) const {
    if (line.value.form == Form::name)
      if (const auto found = context.module->given.find(line.value.text); found != context.module->given.end())
        return found->second;
    line.fail(line.value.column, "a module belongs here for '" + name +
                                     "': {\"block\": …}, or the name of a module that this block is given");
  }

  static std::vector<std::string> settable(const Block& block) {
    std::vector<std::string> names = {"block", "repeat", "when", "checkpoint", "about"};
    for (const Parameter& each : block.parameters) names.push_back(each.name);
    for (const ModuleSpec& each : block.modules)
      if (each.given) names.push_back(each.name);
    return names;
  }

  /// Returns the hint for a parameter that the block does not have: the nearest name, or all parameters.
  static std::string instead_of(const std::string& name, const Block& block) {
    const std::string nearest = did_you_mean(name, settable(block));
    std::vector<std::string> names;
    for (const Parameter& each : block.parameters) names.push_back(each.name);
    return nearest.empty() ? nearest_or_all(name, names) : nearest;
  }

  void set_parameters(Module& module, const ModuleSpec& spec, const Context& context) {
    const Block& block = *module.block;
    for (const auto& [name, line] : spec.settings) {
      const auto same = [&name = name](const Parameter& each) { return each.name == name; };
      if (!takes_module(block, name) && std::ranges::none_of(block.parameters, same))
        fail(line.location, "block '" + block.name + "' has no parameter '" + name + "'" + instead_of(name, block));
    }
    for (const Parameter& parameter : block.parameters) {
      const auto same = [&](const auto& setting) { return setting.first == parameter.name; };
      const auto given = std::ranges::find_if(spec.settings, same);
      const auto otherwise = spec.home->defaults.find(parameter.name);
      if (given != spec.settings.end())
        module.parameters[parameter.name] = interpreter_.evaluate(given->second, environment(context));
      else if (otherwise != spec.home->defaults.end())
        module.parameters[parameter.name] =
            inside(module, spec, [&] { return interpreter_.evaluate(otherwise->second, environment(context)); });
      else if (parameter.initial)
        module.parameters[parameter.name] = inside(module, spec, [&] {
          return interpreter_.evaluate(*parameter.initial, {.home = block.home, .module = &module});
        });
      else
        fail(spec.location, "block '" + block.name + "' needs its parameter '" + parameter.name + "'");
    }
  }

  ModelContext& context_;
  Interpreter interpreter_;
  std::int64_t count_ = 0;
  std::vector<const Json*> making_;
};
}  // namespace

const Weight* Module::find_weight(const std::string& name) const {
  const auto found = block->weight_index.find(name);
  return found == block->weight_index.end() ? nullptr : &weights.at(found->second);
}

const ModuleList* Module::find_module(const std::string& name) const {
  const auto found = block->module_index.find(name);
  return found == block->module_index.end() ? nullptr : &modules.at(found->second);
}

std::unique_ptr<Module> build_modules(ModelContext& context) {
  std::unique_ptr<Module> root = Builder(context).root();
  check_usage(*root, *context.definition);
  return root;
}

}  // namespace xtape::model
