#include "xtape/model.hpp"

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"
#include "model/recording/model_data.hpp"
#include "model/weights/stored_weights.hpp"
#include "tape/calls.hpp"

namespace xtape {

namespace {
using model::Form;

Dtype dtype_of_kind(const std::string& kind, Dtype model_dtype) {
  return kind == "float" ? model_dtype : kind == "int" ? Dtype::int64 : dtype_named(kind);
}

/// Returns the names that a definition gives to the results of a function, or an empty list if it gives none.
std::vector<std::string> given_names(const model::Function& function) {
  const auto& results = function.computation.results;
  std::vector<std::string> names;
  if (!results[0].first.empty()) {
    for (const auto& result : results) names.push_back(result.first);
    return names;
  }
  const model::Expression& value = results[0].second.value;
  if (value.form != Form::tuple) return {};
  for (const model::Expression& each : value.children) {
    if (each.form != Form::name) return {};
    names.push_back(each.text);
  }
  return names;
}

/// Returns the names of the results. Unnamed results are named after the function.
std::vector<std::string> result_names(const model::Function& function, std::size_t count) {
  std::vector<std::string> names = given_names(function);
  if (!names.empty()) return names;
  for (std::size_t i = 0; i < count; ++i)
    names.push_back(count == 1 ? function.name : function.name + "." + std::to_string(i));
  return names;
}

Signature signature_of(const model::Function& function, const model::ModelContext& context) {
  Signature signature;
  signature.results = given_names(function);
  const model::Values& hyper = context.hyper.at(context.definition.get());
  for (const model::Input& input : function.inputs) {
    FunctionInput& made = signature.inputs.emplace_back();
    made.name = input.name;
    made.dtype = dtype_of_kind(input.kind, context.dtype);
    for (const model::Line& dim : input.dims) {
      if (dim.value.form == Form::ellipsis)
        dim.fail(dim.value.column, "an input of a function must have all its sizes: '...' is only for blocks");
      made.dims.push_back(model::to_source(dim.value));
      if (dim.value.form == Form::name && hyper.count(dim.value.text) == 0 &&
          !contains(signature.sizes, dim.value.text))
        signature.sizes.push_back(dim.value.text);
    }
  }
  return signature;
}

Hyper hyper_of(const model::ModelContext& context) {
  Hyper hyper;
  for (const model::Parameter& each : context.definition->hyper) {
    const model::Value& value = context.hyper.at(context.definition.get()).at(each.name);
    hyper.set(each.name, *model::hyper_value(value));
  }
  return hyper;
}

model::Arguments arguments_of(const NamedVars& inputs) {
  model::Arguments arguments;
  for (const auto& [name, var] : inputs) arguments.named.push_back({name, 0, var});
  return arguments;
}

void summarise(const model::Module& module, std::vector<ModuleSummary>& summaries) {
  const std::size_t here = summaries.size();
  ModuleSummary& summary = summaries.emplace_back();
  summary.path = module.path;
  summary.block = module.block->name;
  summary.file = module.block->location.file;
  for (const model::Weight& weight : module.weights) {
    if (weight.path.empty()) continue;
    summary.weights.push_back({weight.path, weight.shape, to_string(weight.initialiser)});
    if (!module.block->updated(weight.spec->name)) summary.parameters += count_of(weight.shape);
  }
  for (const model::ModuleList& list : module.modules)
    for (const auto& item : list.items) {
      const std::size_t child = summaries.size();
      summarise(*item, summaries);
      summaries[here].parameters += summaries[child].parameters;
    }
}

/// Collects the paths of the weights for which chosen(block, weight) holds, in the module and all modules inside it.
template <class Chosen>
void collect_weights(const model::Module& module, const Chosen& chosen, std::vector<std::string>& paths) {
  for (const model::Weight& weight : module.weights)
    if (!weight.path.empty() && chosen(*module.block, *weight.spec)) paths.push_back(weight.path);
  for (const model::ModuleList& list : module.modules)
    for (const auto& item : list.items) collect_weights(*item, chosen, paths);
}

std::string names_of(const NamedArrays& arrays) {
  const std::string names = joined(arrays, &NamedArrays::Entry::name);
  return names.empty() ? "no array is given" : "the arrays given are " + names;
}

constexpr std::size_t kept_players = 16;  // enough for the length buckets of a translation model in train and eval

PlayerOptions with_arena() {
  PlayerOptions options;
  options.arena = make_arena();
  return options;
}
}  // namespace

Model::Data::Data(std::shared_ptr<const model::Definition> definition, const ModelOptions& options)
    : players(kept_players, with_arena()) {
  if (definition->model == nullptr)
    throw DefinitionError(definition->file + " has no \"model\": it is only for use by other definitions");
  if (!is_floating(options.dtype))
    throw DtypeError(std::string("a model's dtype is float32 or float64, not ") + name_of(options.dtype));
  context.definition = std::move(definition);
  context.ops = options.ops != nullptr ? options.ops : &builtin_ops();
  context.dtype = options.dtype;
  context.seed = options.seed;
  context.initialise = options.initialise;
  context.initialised = options.initialised;
  context.max_steps = options.max_steps;
  model::check_names(*context.definition, *context.ops);
  model::resolve_hyper(context, options.hyper);
  hyper = hyper_of(context);
  if (!options.original.empty()) model::find_original(context, options.original);
  for (const model::Function& each : context.definition->functions) signatures[each.name] = signature_of(each, context);
  root = model::build_modules(context);
  definition_text = model::self_contained(context);
}

const model::Function& Model::Data::function(const std::string& name) const {
  if (const model::Function* found = context.definition->find_function(name)) return *found;
  std::vector<std::string> names;
  for (const model::Function& each : context.definition->functions) names.push_back(each.name);
  throw Error("model '" + context.definition->name + "' has no function '" + name + "'" + did_you_mean(name, names));
}

Model Model::load(const std::string& path, const ModelOptions& options) {
  Model model(std::make_unique<Data>(model::read_definition(find_definition(path)), options));
  model.narrow_weights(options.weights, options.initialise);
  return model;
}

Model Model::parse(const std::string& text, const ModelOptions& options, const std::string& name) {
  Model model(std::make_unique<Data>(model::parse_definition(text, name), options));
  model.narrow_weights(options.weights, options.initialise);
  return model;
}

Model::Model(std::unique_ptr<Data> data) : data_(std::move(data)) {}

const std::string& Model::name() const {
  return data_->context.definition->name;
}
const std::string& Model::about() const {
  return data_->context.definition->about;
}
const Hyper& Model::hyper() const {
  return data_->hyper;
}
Dtype Model::dtype() const {
  return data_->context.dtype;
}
const OpTable* Model::ops() const {
  return data_->context.ops;
}
const Store& Model::weights() const {
  return data_->context.store;
}
const std::map<std::string, Axes>& Model::orders() const {
  return data_->context.orders;
}
Array Model::weight(const std::string& name) {
  return data_->context.store.at(name);
}
std::vector<std::string> Model::updated_weights() const {
  std::vector<std::string> names;
  collect_weights(
      *data_->root, [](const auto& block, const auto& weight) { return block.updated(weight.name); }, names);
  return names;
}
std::vector<std::string> Model::weights_from_files() const {
  std::vector<std::string> names;
  collect_weights(
      *data_->root, [](const auto&, const auto& weight) { return weight.value.has_value(); }, names);
  return names;
}
void Model::use_weights(const Store& memory) {
  for (const Store::Entry& entry : memory) {
    const Array& weight = weights().at(entry.name);
    if (!entry.value) throw Error("weight '" + entry.name + "' cannot use this array: the array is empty");
    const auto mismatch = [&] {
      return "weight '" + entry.name + "' is " + to_string(ValueType{weight.dtype(), weight.shape()}) + ", the array " +
             to_string(ValueType{entry.value.dtype(), entry.value.shape()});
    };
    if (weight.dtype() != entry.value.dtype()) throw DtypeError(mismatch());
    if (weight.shape() != entry.value.shape()) throw ShapeError(mismatch());
  }
  for (const Store::Entry& entry : memory) data_->context.store.set(entry.name, Array(entry.value));
  data_->players.clear();
}
const std::string& Model::definition_text() const {
  return data_->definition_text;
}

std::int64_t Model::parameter_count() const {
  return modules()[0].parameters;  // excludes the scales of weights stored as int8
}

std::vector<ModuleSummary> Model::modules() const {
  std::vector<ModuleSummary> summaries;
  summarise(*data_->root, summaries);
  return summaries;
}

std::vector<std::string> Model::functions() const {
  std::vector<std::string> names;
  for (const model::Function& each : data_->context.definition->functions) names.push_back(each.name);
  return names;
}

const Signature& Model::signature(const std::string& function) const {
  return data_->signatures.at(data_->function(function).name);
}

NamedVars Model::inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const {
  const Rollback rollback(tape);
  tape.set_default_dtype(dtype());
  tape.set_ops(*data_->context.ops);
  const model::Function& found = data_->function(function);
  const Signature& signature = this->signature(function);
  model::Environment environment{data_->context.definition.get(), nullptr, false, {}};
  for (const auto& [name, size] : sizes) {
    if (!contains(signature.sizes, name))
      throw Error("function '" + function + "' has no size '" + name + "'" + did_you_mean(name, signature.sizes));
    if (size < 0) throw Error("size '" + name + "' cannot be " + std::to_string(size));
    environment.locals[name] = size;
  }
  for (const std::string& name : signature.sizes)
    if (environment.locals.count(name) == 0) throw Error("function '" + function + "' needs the size '" + name + "'");
  model::Interpreter interpreter(data_->context);
  std::vector<Shape> shapes;
  for (const model::Input& input : found.inputs) {
    Shape& shape = shapes.emplace_back();
    for (const model::Line& dim : input.dims) shape.push_back(interpreter.integer(dim, environment));
  }
  const std::vector<ValueId> known = tape.inputs();
  NamedVars vars;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const FunctionInput& input = signature.inputs[i];
    const auto same = std::ranges::find_if(known, [&](const ValueId& id) {
      return tape.node(id.node).name == input.name && tape.type(id) == ValueType{input.dtype, shapes[i]};
    });
    vars.add(input.name, same != known.end() ? tape.var(*same) : tape.input(input.name, shapes[i], input.dtype));
  }
  return vars;
}

NamedVars Model::record(Tape& tape, const std::string& function, const NamedVars& inputs, RecordedLines* lines) const {
  const Rollback rollback(tape);
  tape.set_default_dtype(dtype());
  tape.set_ops(*data_->context.ops);
  const model::Function& found = data_->function(function);
  model::Value value;
  model::Interpreter interpreter(data_->context, tape, data_->root.get());
  try {
    value = interpreter.call_function(found, arguments_of(inputs));
  } catch (const DefinitionError&) {
    throw;
  } catch (const Error& error) {
    throw Error("function '" + function + "': " + error.what());
  }
  const auto* tuple = value.as<model::Tuple>();
  const model::Tuple results = tuple != nullptr ? *tuple : model::Tuple{value};
  const auto line_of = [&](std::size_t result) -> const model::Line& {
    return found.computation.results[found.computation.results.size() > 1 ? result : 0].second;
  };
  const std::vector<std::string> names = result_names(found, results.size());
  const auto refuse = [&](std::size_t result, const std::string& message) {
    line_of(result).fail(line_of(result).value.column, message);
  };
  if (results.empty()) refuse(0, "a function must have at least one result");
  if (names.size() != results.size()) refuse(0, "result '" + names[0] + "' is not an array but " + describe(value));
  NamedVars vars;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::optional<Operand> result = model::operand_of(results[i]);
    if (!result) refuse(i, "result '" + names[i] + "' is not an array or a number but " + describe(results[i]));
    vars.add(names[i], result->is_literal() ? tape.constant(result->literal()) : result->var());
  }
  if (lines != nullptr) *lines = interpreter.recorded_lines();
  return vars;
}

Var Model::weight(Tape& tape, const std::string& name) const {
  return model::weight_on(tape, data_->context, name);
}

NamedVars Model::weights(Tape& tape) const {
  NamedVars vars;
  for (const Store::Entry& entry : weights()) vars.add(entry.name, weight(tape, entry.name));
  return vars;
}

std::vector<Feed> feeds_of(const NamedVars& inputs, const NamedArrays& arrays) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) {
    const ArrayView* array = arrays.find(name);
    if (array == nullptr) throw Error("input '" + name + "' is not given: " + names_of(arrays));
    feeds.emplace_back(var, *array);
  }
  return feeds;
}

std::shared_ptr<PlayableFunction> Model::player(const std::string& function, Mode mode, const NamedSizes& sizes) {
  return data_->players.of({function, mode, sizes, ""}, [&](const FunctionKey& key) {
    Tape tape(mode);
    const NamedVars given = inputs(tape, function, key.sizes);
    const NamedVars results = record(tape, function, given);
    return FunctionCache<>::Recording{tape, given, results};
  });
}

NamedSizes Model::sizes(const std::string& function, const NamedArrays& arrays,
                        const std::vector<std::string>& missing) const {
  const Signature& signature = this->signature(function);
  const std::string whose = "function '" + function + "' of model '" + name() + "'";
  NamedSizes sizes;
  for (const FunctionInput& input : signature.inputs) {
    if (contains(missing, input.name)) continue;
    const ArrayView* array = arrays.find(input.name);
    if (array == nullptr) throw Error(whose + " takes an input '" + input.name + "', but " + names_of(arrays));
    const auto mismatch = [&] {
      return "input '" + input.name + "' of " + whose + " is " + name_of(input.dtype) + " of rank " +
             std::to_string(input.dims.size()) + ", got " + name_of(array->dtype()) + " " + to_string(array->shape());
    };
    if (input.dtype != array->dtype()) throw DtypeError(mismatch());
    if (input.dims.size() != array->shape().size()) throw ShapeError(mismatch());
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
      const std::string& dim = input.dims[axis];
      if (contains(signature.sizes, dim) && !sizes.has(dim)) sizes.add(dim, array->shape()[axis]);
    }
  }
  return sizes;
}

Store Model::play(const std::string& function, const NamedArrays& arrays, Mode mode) {
  const auto playable = player(function, mode, sizes(function, arrays));
  playable->player.play(feeds_of(playable->inputs, arrays), 0);
  Store results;
  for (const auto& [name, var] : playable->results) results.add(name, Array(playable->player.view(var)));
  return results;
}

std::vector<std::shared_ptr<const PlayableFunction>> Model::players() const {
  return {data_->players.begin(), data_->players.end()};
}

void Model::set_player_options(std::size_t capacity, const PlayerOptions& options) {
  PlayerOptions playing = options;
  if (playing.arena == nullptr) playing.arena = make_arena();
  data_->players = FunctionCache<>(capacity, playing);
}

const PlayerOptions& Model::player_options() const {
  return data_->players.options();
}

}  // namespace xtape
