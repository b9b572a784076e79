/// xtape check: checks a definition by recording all of its functions. With --play, also plays `logits`.
#include <iostream>
#include <memory>
#include <sstream>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "base/messages/wording.hpp"
#include "cli/opened_model.hpp"
#include "cli/run_options.hpp"
#include "decode/step_trials.hpp"
#include "model/definition/checks.hpp"
#include "model/definition/definition.hpp"
#include "model/hugging_face/folder.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/op/op.hpp"

namespace xtape::cli {
namespace {

struct CheckArguments {
  DefinitionOptions definition;
  std::string with;
  bool play = false;
};

/// Returns the sizes `given`, and small sizes for all others. The small sizes differ from each other, so that swapped
/// axes are errors.
NamedSizes trial_sizes(const Signature& signature, const NamedSizes& given) {
  constexpr std::int64_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
  NamedSizes sizes;
  std::size_t next = 0;
  for (const std::string& name : signature.sizes) {
    const std::int64_t prime = primes[next++ % std::size(primes)];
    const std::int64_t* wanted = given.find(name);
    sizes.add(name, wanted != nullptr ? *wanted : prime);
  }
  return sizes;
}

/// Throws WrongInput if one of the sizes in `given` is not a size of any function.
void check_sizes(const Model& model, const NamedSizes& given) {
  std::vector<std::string> known;
  for (const std::string& function : model.functions())
    for (const std::string& name : model.signature(function).sizes) known.push_back(name);
  for (const auto& size : given)
    if (!contains(known, size.name))
      throw WrongInput("no function has a size '" + size.name + "'" + did_you_mean(size.name, known));
}

/// Plays `logits` step by step and as a whole. Returns a description of the result.
std::string play(const DefinitionOptions& arguments, const NamedSizes& given) {
  constexpr const char* function = "logits";
  Model model = load_model(arguments, false);
  const std::vector<std::string> functions = model.functions();
  if (!contains(functions, function)) return "nothing to play: there is no function 'logits'";
  decode::draw_weights(model);
  const decode::StepCheck check = decode::check_steps(model, function, given);
  if (!check.unfit.empty()) return "nothing to play: 'logits' " + check.unfit;
  std::ostringstream said;
  said << "played 'logits' on " << check.rows << " rows of " << check.tokens << " tokens: pieces of "
       << joined(check.pieces, [](std::int64_t piece) { return std::to_string(piece); })
       << " tokens give the same as the whole (difference " << check.difference << ")";
  return said.str();
}

/// Checks that lines know what they use, and use what is declared.
void check_uses(const model::Definition& definition) {
  model::check_names(definition, builtin_ops(), true);
  model::check_inputs(definition);
}

void check_recipe(const CheckArguments& arguments) {
  if (arguments.play || !arguments.with.empty())
    throw WrongInput("--play and --with check a definition, and '" + arguments.definition.definition + "' is a recipe");
  const Recipe recipe = Recipe::load(arguments.definition.definition, parse_settings(arguments.definition.set));
  if (recipe.from.empty()) check_uses(*model::read_definition(find_definition(recipe.definition)));
  const train::DataSplits splits(recipe);
  const train::Tokenizers tokenizers = splits.make_tokenizers(recipe);
  const std::unique_ptr<Batches> batches = splits.batches(recipe, tokenizers);
  Model model = train::checked_model(recipe, tokenizers, *batches);
  train::try_evaluation(model, recipe, tokenizers, *batches);
  std::cout << arguments.definition.definition
            << ": recipe, data and definition fit: " << grouped(model.parameter_count()) << " parameters, batches of "
            << joined(batches->blank(),
                      [](const auto& field) { return field.name + " " + to_string(field.value.shape()); })
            << "\n";
}

void check(const CheckArguments& arguments) {
  std::string path = arguments.definition.definition;
  const std::optional<ModelFolder> folder = model_folder(path);
  const bool run = path_exists(path + "/recipe.json");
  if (!folder && !run) {
    if (!recipe_file(path).empty()) return check_recipe(arguments);
    path = find_definition(path, "recipes");
    const auto definition = model::read_definition(path);
    check_uses(*definition);
    if (definition->model == nullptr) {
      std::cout << path << ": " << definition->blocks.size() << " blocks, no mistake found\n";
      return;
    }
  }
  std::vector<std::string> unused;
  if (folder)
    unused = model::check_hugging_face(folder->path, model_options(arguments.definition, false), folder->adapter);
  const Model model = load_model(arguments.definition, false);
  const NamedSizes given = sizes_of(arguments.with);
  check_sizes(model, given);
  for (const std::string& function : model.functions())
    for (const Mode mode : {Mode::train, Mode::eval}) {
      Tape tape(mode);
      model.record(tape, function, model.inputs(tape, function, trial_sizes(model.signature(function), given)));
    }
  const std::string played =
      arguments.play
          ? play(arguments.definition, given)
          : "recorded, not played: with --play, 'logits' is also played step by step, and compared with the whole";
  std::cout << path << ": " << model.functions().size() << " functions, " << grouped(model.parameter_count())
            << " parameters, no mistake found\n"
            << played << "\n";
  if (!unused.empty())
    std::cout << "the definition has no use for these tensors of the folder: "
              << joined(unused, [](const std::string& name) { return name; }) << "\n";
}

}  // namespace

void add_check(CLI::App& program) {
  const auto [command, arguments] = add_command<CheckArguments>(
      program, "check", "Check a definition, or a recipe with its data: all names and shapes",
      [](const CLI::App& given, const CheckArguments& of) {
        CheckArguments arguments = of;
        if (arguments.play && given.count("--dtype") == 0) arguments.definition.dtype = "float64";
        as_wrong_input([&] { check(arguments); });
      });
  add_definition(command, arguments.definition, "; or a recipe, with its settings");
  add_option(command, "--with", arguments.with,
             "Sizes to record for, such as b=2,t=8 (default: different small primes)");
  command.add_flag("--play", arguments.play,
                   "Play 'logits' on random weights and tokens, step by step as generation does, and compare with the "
                   "whole; in float64 unless --dtype is given");
}

}  // namespace xtape::cli
