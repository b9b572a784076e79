/// xtape run: plays one function of a definition on arrays from a file.
#include <algorithm>
#include <memory>

#include "definition_options.hpp"
#include "nearest.hpp"
#include "xtape/grad.hpp"
#include "xtape/player.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {
namespace {

struct RunArguments {
  DefinitionOptions definition;
  std::string function, in, out, weights, mode = "eval";
  bool grad = false;
  int threads = 0;
};

template <class From, class To>
Array converted(const Array& from) {
  Array to(dtype_of<To>(), from.shape());
  for (std::int64_t i = 0; i < from.count(); ++i) to.as<To>()[i] = static_cast<To>(from.as<From>()[i]);
  return to;
}

/// Converts the array to the dtype of the input if only the width differs.
Array fitting(const Array& array, const FunctionInput& input) {
  if (array.dtype() == input.dtype) return array;
  if (array.dtype() == Dtype::float32 && input.dtype == Dtype::float64) return converted<float, double>(array);
  if (array.dtype() == Dtype::float64 && input.dtype == Dtype::float32) return converted<double, float>(array);
  if (array.dtype() == Dtype::bfloat16 && input.dtype == Dtype::float32) return converted<bfloat16, float>(array);
  if (array.dtype() == Dtype::bfloat16 && input.dtype == Dtype::float64) return converted<bfloat16, double>(array);
  if (array.dtype() == Dtype::int8 && input.dtype == Dtype::int32) return converted<std::int8_t, std::int32_t>(array);
  if (array.dtype() == Dtype::int8 && input.dtype == Dtype::int64) return converted<std::int8_t, std::int64_t>(array);
  if (array.dtype() == Dtype::int32 && input.dtype == Dtype::int64) return converted<std::int32_t, std::int64_t>(array);
  if (array.dtype() == Dtype::int64 && input.dtype == Dtype::int32) return converted<std::int64_t, std::int32_t>(array);
  throw WrongInput("input '" + input.name + "' must be " + name_of(input.dtype) + ", the file has " +
                   name_of(array.dtype()));
}

std::vector<Array> arrays_for(const Signature& signature, const std::string& path) {
  const Store file = load_arrays(path);
  std::vector<Array> arrays;
  std::vector<std::string> names;
  for (const FunctionInput& input : signature.inputs) {
    names.push_back(input.name);
    const Array* array = file.find(input.name);
    if (array == nullptr) throw WrongInput("'" + path + "' has no array '" + input.name + "'");
    arrays.push_back(fitting(*array, input));
  }
  for (const Store::Entry& entry : file)
    if (std::find(names.begin(), names.end(), entry.name) == names.end())
      throw WrongInput("'" + path + "' has '" + entry.name + "', which is not an input of the function" +
                       did_you_mean(entry.name, names));
  return arrays;
}

/// The gradients of the first result by every weight and floating input, named grad.NAME.
NamedVars gradients(Tape& tape, const Model& model, const NamedVars& inputs, const NamedVars& results) {
  const Var& first = results[0].value;
  if (first.rank() != 0 || !is_floating(first.dtype()))
    throw WrongInput("--grad needs a scalar: the first result, '" + results[0].name + "', is " +
                     to_string(first.type()));
  NamedVars by = model.weights(tape);
  for (const auto& [name, var] : inputs)
    if (is_floating(var.dtype())) by.add(name, var);
  Vars vars;
  for (const auto& each : by) vars.push_back(each.value);
  const Vars found = grad(first, vars);
  NamedVars named;
  for (std::size_t i = 0; i < by.size(); ++i) named.add("grad." + by[i].name, found[i]);
  return named;
}

/// A recorded function and the arrays for its inputs.
struct Work {
  Tape tape;
  std::vector<Array> arrays;
  NamedVars inputs, results;
};

Work prepared(const RunArguments& arguments, Model& model) {
  if (!arguments.weights.empty()) model.load_weights(arguments.weights);
  const Signature& signature = model.signature(arguments.function);
  Work work{Tape(mode_named(arguments.mode)), arrays_for(signature, arguments.in), {}, {}};
  for (std::size_t i = 0; i < work.arrays.size(); ++i) {
    const std::string& name = signature.inputs[i].name;
    work.inputs.add(name, work.tape.input(name, work.arrays[i].shape(), work.arrays[i].dtype()));
  }
  work.results = model.record(work.tape, arguments.function, work.inputs);
  if (arguments.grad) {
    for (const auto& [name, var] : gradients(work.tape, model, work.inputs, work.results)) work.results.add(name, var);
  }
  return work;
}

void run(const RunArguments& arguments) {
  Model model = as_wrong_input([&] { return load_model(arguments.definition, arguments.weights.empty()); });
  const Work work = as_wrong_input([&] { return prepared(arguments, model); });
  Vars outputs;
  for (const auto& each : work.results) outputs.push_back(each.value);
  PlayerOptions options;
  options.threads = arguments.threads;
  options.seed = arguments.definition.seed;
  Player player(work.tape, outputs, options);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < work.arrays.size(); ++i) feeds.emplace_back(work.inputs[i].value, work.arrays[i]);
  player.play(feeds);
  Store out;
  for (const auto& [name, var] : work.results) out.add(name, Array(player.view(var)));
  save_arrays(arguments.out, out);
}

}  // namespace

void add_run(CLI::App& program) {
  CLI::App* command = program.add_subcommand("run", "Play one function of a definition on arrays from a file");
  const auto arguments = std::make_shared<RunArguments>();
  add_definition(*command, arguments->definition);
  command->add_option("FUNCTION", arguments->function, "The function to play")->required();
  command->add_option("--in", arguments->in, "A safetensors file with its inputs by name")->required();
  command->add_option("--out", arguments->out, "The safetensors file to write its results to")->required();
  command->add_option("--weights", arguments->weights,
                      "A safetensors file with the weights (default: initial weights)");
  command->add_option("--mode", arguments->mode, "train, eval or predict")->capture_default_str();
  command->add_flag(
      "--grad", arguments->grad,
      "Also write grad.NAME: the gradients of the first result, which must be a scalar, by every weight and "
      "every floating input");
  command->add_option("--seed", arguments->definition.seed, "The seed of initial weights and random ops")
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "The number of threads (0: all cores)")->capture_default_str();
  command->callback([arguments] { run(*arguments); });
}

}  // namespace xtape::cli
