/// xtape show: prints a definition's hyper-parameters, functions, modules and weights, or the tape of a function.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "definition_options.hpp"
#include "xtape/grad.hpp"

namespace xtape::cli {
namespace {

struct ShowArguments {
  DefinitionOptions definition;
  std::string tape, with, mode = "eval", format = "text";
  bool grad = false;
};

/// Equal modules of a list are printed once, with a star instead of the index.
struct Shown {
  ModuleSummary module;
  std::string path;
  std::int64_t count = 1;
};

std::string starred(const std::string& path) {
  std::string text;
  for (std::size_t first = 0; first <= path.size();) {
    const std::size_t dot = std::min(path.find('.', first), path.size());
    const std::string word = path.substr(first, dot - first);
    const bool number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    text += (first > 0 ? "." : "") + (number ? "*" : word);
    first = dot + 1;
  }
  return text;
}

bool equal_modules(const ModuleSummary& a, const ModuleSummary& b) {
  return a.block == b.block && a.parameters == b.parameters &&
         std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(),
                    [](const auto& x, const auto& y) { return x.shape == y.shape && x.init == y.init; });
}

std::vector<Shown> shown_modules(const Model& model) {
  std::vector<Shown> shown;
  for (const ModuleSummary& module : model.modules()) {
    const std::string path = starred(module.path);
    const auto same = std::find_if(shown.begin(), shown.end(), [&](const Shown& each) {
      return each.path == path && equal_modules(each.module, module);
    });
    if (same != shown.end())
      ++same->count;
    else
      shown.push_back({module, path});
  }
  return shown;
}

std::string last_word(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

void print_modules(const Model& model) {
  const std::vector<Shown> shown = shown_modules(model);
  std::size_t width = 0;
  for (const Shown& each : shown) width = std::max(width, each.path.size() + 2);
  std::cout << "modules\n";
  for (const Shown& each : shown) {
    const bool root = each.path.empty();
    std::cout << "  " << std::left << std::setw(static_cast<int>(width)) << (root ? "(model)" : each.path)
              << std::setw(18) << each.module.block << std::right << std::setw(14) << grouped(each.module.parameters)
              << (each.count > 1 ? "  each of " + std::to_string(each.count) : "") << '\n';
    for (const ModuleSummary::Weight& weight : each.module.weights)
      std::cout << "      " << std::left << std::setw(static_cast<int>(width) - 4) << last_word(weight.name)
                << std::setw(18) << to_string(weight.shape) << std::right << std::setw(14)
                << grouped(count_of(weight.shape)) << "  " << weight.init << '\n';
  }
}

void print_model(const Model& model) {
  std::cout << model.name() << (model.about().empty() ? "" : ": " + model.about()) << "\n\nhyper-parameters\n";
  for (const auto& [name, value] : model.hyper().items())
    std::cout << "  " << name << " = " << to_string(value) << '\n';
  std::cout << "functions\n";
  for (const std::string& name : model.functions()) {
    std::string list;
    for (const FunctionInput& input : model.signature(name).inputs) {
      std::string dims;
      for (const std::string& dim : input.dims) dims += (dims.empty() ? "" : ", ") + dim;
      list += (list.empty() ? "" : ", ") + input.name + ": " + name_of(input.dtype) + " [" + dims + "]";
    }
    std::cout << "  " << name << "(" << list << ")\n";
  }
  print_modules(model);
  std::cout << grouped(model.parameter_count()) << " parameters\n";
}

void print_tape(const Model& model, const ShowArguments& arguments) {
  Tape tape(mode_named(arguments.mode));
  const NamedVars inputs = model.inputs(tape, arguments.tape, sizes_of(arguments.with));
  const NamedVars results = model.record(tape, arguments.tape, inputs);
  if (arguments.grad) {
    Vars weights;
    for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
    grad(results[0].value, weights);
  }
  if (arguments.format == "json")
    tape.to_json(std::cout);
  else if (arguments.format == "dot")
    tape.to_dot(std::cout);
  else
    std::cout << tape;
}

void show(const ShowArguments& arguments) {
  const Model model = load_model(arguments.definition, false);
  if (arguments.tape.empty())
    print_model(model);
  else
    print_tape(model, arguments);
}

}  // namespace

void add_show(CLI::App& program) {
  CLI::App* command = program.add_subcommand("show", "Print a definition's modules and weights, or a function's tape");
  const auto arguments = std::make_shared<ShowArguments>();
  add_definition(*command, arguments->definition);
  auto* tape = command->add_option("--tape", arguments->tape, "Print the tape of this function instead");
  command->add_option("--with", arguments->with, "The sizes to record for, such as b=2,t=8")->needs(tape);
  command->add_flag("--grad", arguments->grad, "Also record the gradients of the first result by all weights")
      ->needs(tape);
  command->add_option("--mode", arguments->mode, "train, eval or predict")->capture_default_str()->needs(tape);
  command->add_option("--format", arguments->format, "text, json or dot")
      ->capture_default_str()
      ->needs(tape)
      ->check(CLI::IsMember({"text", "json", "dot"}));
  command->callback([arguments] { as_wrong_input([&] { show(*arguments); }); });
}

}  // namespace xtape::cli
