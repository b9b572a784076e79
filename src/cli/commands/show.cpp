/// xtape show: prints a definition's hyper-parameters, functions, modules and weights, or a recipe. Prints or saves a
/// tape. Lists the installed definitions and recipes, or all keys of recipes.
#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "cli/recorded.hpp"
#include "cli/run_options.hpp"
#include "tape/node_text.hpp"
#include "tape/tape_json.hpp"
#include "train/recipe/key_spec.hpp"

namespace xtape::cli {
namespace {

struct ShowArguments {
  RecordedOptions recorded;
  std::string with, format = "text", save;
  bool keys = false;
};

/// A module to print. Equal modules of a list are printed once, with a star instead of the index.
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
  std::unordered_map<std::string, std::vector<std::size_t>> of_path;  // indices in `shown`
  for (const ModuleSummary& module : model.modules()) {
    const std::string path = starred(module.path);
    std::vector<std::size_t>& alike = of_path[path];
    const auto same =
        std::ranges::find_if(alike, [&](std::size_t i) { return equal_modules(shown[i].module, module); });
    if (same != alike.end()) {
      ++shown[*same].count;
    } else {
      alike.push_back(shown.size());
      shown.push_back({module, path});
    }
  }
  return shown;
}

std::string name_within(const std::string& module, const std::string& weight) {
  return module.empty() ? weight : weight.substr(module.size() + 1);
}

void print_modules(const Model& model) {
  const std::vector<Shown> shown = shown_modules(model);
  std::size_t width = 0;
  for (const Shown& each : shown) {
    width = std::max(width, each.path.size() + 2);
    for (const ModuleSummary::Weight& weight : each.module.weights)
      width = std::max(width, name_within(each.module.path, weight.name).size() + 5);
  }
  std::cout << "modules\n";
  for (const Shown& each : shown) {
    const bool root = each.path.empty();
    std::cout << "  " << std::left << std::setw(static_cast<int>(width)) << (root ? "(model)" : each.path)
              << std::setw(18) << each.module.block << std::right << std::setw(14) << grouped(each.module.parameters)
              << (each.count > 1 ? "  each of " + std::to_string(each.count) : "") << '\n';
    for (const ModuleSummary::Weight& weight : each.module.weights)
      std::cout << "      " << std::left << std::setw(static_cast<int>(width) - 4)
                << name_within(each.module.path, weight.name) << std::setw(18) << to_string(weight.shape) << std::right
                << std::setw(14) << grouped(count_of(weight.shape)) << "  " << weight.init << '\n';
  }
}

void print_model(const Model& model) {
  std::cout << model.name() << (model.about().empty() ? "" : ": " + model.about()) << "\n\nhyper-parameters\n";
  for (const auto& [name, value] : model.hyper().items())
    std::cout << "  " << name << " = " << to_string(value) << '\n';
  std::cout << "functions\n";
  for (const std::string& name : model.functions()) {
    const auto declared = [](const FunctionInput& input) {
      return input.name + ": " + name_of(input.dtype) + " [" + joined(input.dims) + "]";
    };
    std::cout << "  " << name << "(" << joined(model.signature(name).inputs, declared) << ")\n";
  }
  print_modules(model);
  std::cout << grouped(model.parameter_count()) << " parameters\n";
}

/// Returns the first sentence of a text or of a list of its lines, without its period, shortened to about `width`
/// characters.
std::string first_sentence(const Json& about, std::size_t width) {
  std::string text;
  for (const Json& line : about.is_array() ? about : Json::array({about}))
    if (line.is_string()) text += (text.empty() ? "" : " ") + line.get<std::string>();
  std::size_t end = text.find(". ");
  while (end != std::string::npos && text[end + 2] == '(') end = text.find(". ", end + 1);  // as in "et al. (2016)"
  text = text.substr(0, end);
  if (!text.empty() && text.back() == '.') text.pop_back();
  if (text.size() > width) text = text.substr(0, text.rfind(' ', width)) + " …";
  return text;
}

/// Prints the JSON files of a folder, each with what it says about itself.
void print_files(const char* title, const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw WrongInput("there is no folder " + folder.string() + "; set XTAPE_MODELS to the directory of the models");
  std::map<std::string, std::string> abouts;
  std::size_t width = 0;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const JsonText file(read_file(entry.path().string()), entry.path().string(), JsonErrors::file);
    const std::string name = entry.path().stem().string();
    abouts[name] = first_sentence(file.root().value("about", Json("")), 72);
    width = std::max(width, name.size());
  }
  std::cout << title << '\n';
  for (const auto& [name, about] : abouts)
    std::cout << "  " << std::left << std::setw(static_cast<int>(width) + 2) << name << about << '\n';
}

void print_tape(const RecordedTape& recorded, const std::string& format) {
  if (format == "json")
    std::cout << text_of(recorded.tape, recorded.outputs).text;
  else if (format == "dot")
    recorded.tape.to_dot(std::cout);
  else
    std::cout << recorded.tape;
  if (format != "text") return;
  for (const auto& [name, var] : recorded.outputs)
    std::cout << "output '" << name << "' " << reference(recorded.tape, var.id()) << '\n';
}

void show(const CLI::App& command, const ShowArguments& arguments) {
  if (arguments.keys) return train::write_keys(std::cout);
  RecordedOptions options = arguments.recorded;
  if (options.definition.definition.empty()) {
    print_files("models", models_directory());
    print_files("recipes", std::filesystem::path(models_directory()) / "recipes");
    std::cout << "xtape show NAME prints one of them\n";
    return;
  }
  if (const std::string recipe = recipe_file(options.definition.definition); !recipe.empty()) {
    if (!options.function.empty()) throw WrongInput("--tape records a definition, and '" + recipe + "' is a recipe");
    const std::vector<std::string>& set = options.definition.set;
    std::cout << (set.empty() ? read_file(recipe) : Recipe::load(recipe, parse_settings(set)).text);
    return;
  }
  if (is_onnx(options.definition.definition)) options.sizes.named = sizes_of(arguments.with);
  if (options.function.empty() && !is_tape_file(options.definition.definition)) {
    for (const char* name : {"--with", "--grad", "--mode", "--format", "--save", "--weights"})
      if (command.count(name) > 0)
        throw WrongInput(std::string(name) + " needs --tape FUNCTION, or a saved tape or ONNX file");
    return print_model(load_model(options.definition, false));
  }
  const auto inputs = [&](const Model& model, Tape& tape) {
    return model.inputs(tape, options.function, sizes_of(arguments.with));
  };
  const RecordedTape recorded = recorded_tape(command, options, arguments.save.empty(), inputs);
  if (arguments.save.empty())
    print_tape(recorded, arguments.format);
  else
    recorded.tape.save(arguments.save, recorded.outputs);
}

}  // namespace

void add_show(CLI::App& program) {
  const auto [command, arguments] = add_command<ShowArguments>(
      program, "show", "List the models and recipes, print one of them, or print or save a tape",
      [](const CLI::App& given, const ShowArguments& of) { as_wrong_input([&] { show(given, of); }); });
  add_recorded(command, arguments.recorded);
  CLI::Option* definition = command.get_option("DEFINITION")->required(false);
  command.add_flag("--keys", arguments.keys, "Print all keys of recipes, as Markdown")->excludes(definition);
  add_option(command, "--tape", arguments.recorded.function, "Record this function, and print its tape instead");
  add_option(command, "--with", arguments.with, "The sizes to record for, such as b=2,t=8");
  add_option(command, "--format", arguments.format, "text, json or dot", shown)
      ->check(CLI::IsMember({"text", "json", "dot"}));
  add_option(command, "--save", arguments.save, "Save the tape to this folder instead of printing it");
}

}  // namespace xtape::cli
