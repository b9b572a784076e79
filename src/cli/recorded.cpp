#include "recorded.hpp"

#include "xtape/grad.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

void add_recorded(CLI::App& command, RecordedOptions& options) {
  add_definition(command, options.definition, ", or a saved tape");
  command.add_option("--weights", options.weights,
                     "A safetensors file with the weights (default: initial weights, or those of the saved tape)");
  command.add_option("--mode", options.mode, "train, eval or predict")->capture_default_str();
  command.add_option("--seed", options.definition.seed, "The seed of initial weights and random ops")
      ->capture_default_str();
  command.add_flag(
      "--grad", options.grad,
      "Also record grad.NAME: the gradients of the first result, which must be a scalar, by every weight and "
      "every floating input");
}

namespace {
RecordedTape saved_tape(const CLI::App& command, const RecordedOptions& options) {
  for (const char* name : {"FUNCTION", "--tape", "--with", "--set", "--dtype", "--mode"})
    if (const CLI::Option* option = command.get_option_no_throw(name); option != nullptr && option->count() > 0)
      throw WrongInput("'" + options.definition.definition + "' is a saved tape, which takes no " + name);
  const Store weights = options.weights.empty() ? Store() : load_arrays(options.weights);
  SavedTape saved = Tape::load(options.definition.definition, weights);
  return {saved.tape, saved.inputs, saved.parameters, saved.outputs};
}

RecordedTape recorded_function(const RecordedOptions& options, bool zeros, const MakeInputs& make_inputs) {
  Model model = load_model(options.definition, options.weights.empty() && !zeros);
  if (!options.weights.empty()) model.load_weights(options.weights);
  RecordedTape recorded{Tape(mode_named(options.mode)), {}, {}, {}};
  recorded.inputs = make_inputs(model, recorded.tape);
  recorded.outputs = model.record(recorded.tape, options.function, recorded.inputs);
  if (options.grad) recorded.weights = model.weights(recorded.tape);
  return recorded;
}

void add_gradients(RecordedTape& recorded) {
  if (recorded.outputs.empty()) throw WrongInput("--grad needs an output: the saved tape names none");
  const auto [first, value] = recorded.outputs[0];
  if (value.rank() != 0 || !is_floating(value.dtype()))
    throw WrongInput("--grad needs a scalar: the first result, '" + first + "', is " + to_string(value.type()));
  NamedVars by;
  for (const NamedVars* vars : {&recorded.weights, &recorded.inputs})
    for (const auto& [name, var] : *vars)
      if (is_floating(var.dtype())) by.add(name, var);
  Vars vars;
  for (const auto& each : by) vars.push_back(each.value);
  const Vars found = grad(value, vars);
  for (std::size_t i = 0; i < by.size(); ++i) recorded.outputs.add("grad." + by[i].name, found[i]);
}
}  // namespace

RecordedTape recorded_tape(const CLI::App& command, const RecordedOptions& options, bool zeros,
                           const MakeInputs& make_inputs) {
  RecordedTape recorded = is_saved_tape(options.definition.definition) ? saved_tape(command, options)
                                                                       : recorded_function(options, zeros, make_inputs);
  if (options.grad) add_gradients(recorded);
  return recorded;
}

}  // namespace xtape::cli
