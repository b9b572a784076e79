#include "cli/recorded.hpp"

#include <algorithm>
#include <cstring>

#include "base/messages/wording.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

void add_recorded(CLI::App& command, RecordedOptions& options) {
  add_definition(command, options.definition, ", or a saved tape, or an ONNX file");
  add_option(command, "--weights", options.weights,
             "A safetensors file with the weights (default: initial weights, or those of the tape or ONNX file)");
  add_option(command, "--mode", options.mode, "train, eval or predict", shown);
  add_option(command, "--seed", options.definition.seed, "The seed of initial weights and random ops", shown);
  command.add_flag(
      "--grad", options.grad,
      "Also record grad.NAME: the gradients of the first result, which must be a scalar, by every weight and "
      "every floating input");
}

namespace {
RecordedTape tape_from_file(const CLI::App& command, const RecordedOptions& options) {
  const std::string& path = options.definition.definition;
  for (const char* name : {"FUNCTION", "--tape", "--with", "--set", "--dtype", "--mode"}) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr || option->count() == 0 || (is_onnx(path) && std::string(name) == "--with")) continue;
    throw WrongInput("'" + path + "' is " + (is_onnx(path) ? "an ONNX file" : "a saved tape") + ", which takes no " +
                     name);
  }
  const Store weights = options.weights.empty() ? Store() : load_arrays(options.weights);
  return {load_tape(path, options.sizes, weights), {}};
}

/// Replaces the weights of the model by the arrays of the same names.
void take_weights(Model& model, const Store& arrays) {
  Store taken;
  std::string missing;
  for (const auto& [name, weight] : model.weights()) {
    const Array* array = arrays.find(name);
    if (array == nullptr) {
      missing = name;
      continue;
    }
    if (!is_floating(array->dtype()))
      throw WrongInput("weight '" + name + "' is " + name_of(array->dtype()) + ", not a float");
    taken.add(name, as_dtype(*array, weight.dtype()));
  }
  if (taken.empty()) return;
  if (!missing.empty())
    throw WrongInput("the file has " + std::to_string(taken.size()) + " of the model's weights, but not '" + missing +
                     "'");
  model.use_weights(taken);
}

RecordedTape recorded_function(const RecordedOptions& options, bool zeros, const MakeInputs& make_inputs) {
  Model model = load_model(options.definition, (options.weights.empty() || options.weights_among) && !zeros);
  if (options.weights_among)
    take_weights(model, options.weights_among(model.weights()));
  else if (!options.weights.empty())
    model.load_weights(options.weights);
  RecordedTape recorded;
  recorded.tape = Tape(mode_named(options.mode));
  recorded.inputs = make_inputs(model, recorded.tape);
  recorded.outputs = model.record(recorded.tape, options.function, recorded.inputs, &recorded.lines);
  if (options.grad) recorded.parameters = model.weights(recorded.tape);
  return recorded;
}

void add_gradients(RecordedTape& recorded) {
  if (recorded.outputs.empty()) throw WrongInput("--grad needs an output: the tape names none");
  const auto [first, value] = recorded.outputs[0];
  if (value.rank() != 0 || !is_floating(value.dtype()))
    throw WrongInput("--grad needs a scalar: the first result, '" + first + "', is " + to_string(value.type()));
  NamedVars by;
  for (const NamedVars* vars : {&recorded.parameters, &recorded.inputs})
    for (const auto& [name, var] : *vars)
      if (is_floating(var.dtype())) by.add(name, var);
  Vars vars;
  for (const auto& each : by) {
    if (recorded.outputs.has("grad." + each.name))
      throw WrongInput("--grad: there is an output 'grad." + each.name + "' already");
    vars.push_back(each.value);
  }
  const Vars found = grad(value, vars, {.materialize_grads = true});
  for (std::size_t i = 0; i < by.size(); ++i) recorded.outputs.add("grad." + by[i].name, found[i]);
}

/// Converts the array to the dtype of the input if only the width differs.
Array fitting(const Array& array, const Wanted& input) {
  const bool floats = is_floating(array.dtype()) && is_floating(input.dtype);
  const bool integers = (is_integer(array.dtype()) || array.dtype() == Dtype::int8) && is_integer(input.dtype);
  if (array.dtype() == input.dtype) return Array(array);
  if (!floats && !integers)
    throw WrongInput("input '" + input.name + "' must be " + name_of(input.dtype) + ", the file has " +
                     name_of(array.dtype()));
  Array fit = as_dtype(array, input.dtype);
  const Array back = as_dtype(fit, array.dtype());
  if (integers && std::memcmp(back.data(), array.data(), array.bytes()) != 0)
    throw WrongInput("input '" + input.name + "' must be " + name_of(input.dtype) + "; the file has " +
                     name_of(array.dtype()) + " with numbers that do not fit");
  return fit;
}
}  // namespace

Array as_dtype(const Array& array, Dtype dtype) {
  Tape tape;
  return evaluate(cast(tape.constant(array), dtype));
}

Store arrays_among(const std::vector<Wanted>& inputs, const Store& file, const std::string& path) {
  Store arrays;
  for (const Wanted& input : inputs) {
    const Array* array = file.find(input.name);
    if (array == nullptr && !input.is_state)
      throw WrongInput(path.empty() ? "input '" + input.name + "' is not given: --in FILE names a file with it"
                                    : "'" + path + "' has no array '" + input.name + "'");
    if (array != nullptr) arrays.add(input.name, fitting(*array, input));
  }
  return arrays;
}

Store arrays_for(const std::vector<Wanted>& inputs, const std::string& path) {
  const Store file = path.empty() ? Store() : load_arrays(path);
  Store arrays = arrays_among(inputs, file, path);
  std::vector<std::string> names;
  for (const Wanted& input : inputs) names.push_back(input.name);
  for (const Store::Entry& entry : file)
    if (!arrays.has(entry.name))
      throw WrongInput("'" + path + "' has '" + entry.name + "', which is not an input" +
                       did_you_mean(entry.name, names));
  return arrays;
}

bool is_state(const std::vector<Carry>& states, const Var& input) {
  return std::ranges::any_of(states, [&](const Carry& state) { return state.input.id() == input.id(); });
}

std::vector<Wanted> wanted_by(const Tape& tape, const NamedVars& inputs) {
  const std::vector<Carry> states = tape.states();
  std::vector<Wanted> wanted;
  for (const auto& [name, var] : inputs) wanted.push_back({name, var.dtype(), is_state(states, var)});
  return wanted;
}

RecordedTape recorded_tape(const CLI::App& command, const RecordedOptions& options, bool zeros,
                           const MakeInputs& make_inputs) {
  RecordedTape recorded = is_tape_file(options.definition.definition) ? tape_from_file(command, options)
                                                                      : recorded_function(options, zeros, make_inputs);
  if (options.grad) add_gradients(recorded);
  return recorded;
}

}  // namespace xtape::cli
