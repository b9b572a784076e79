/// xtape check: checks a definition by recording all of its functions. With --play, also plays `logits`.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "cli/opened_model.hpp"
#include "cli/run_options.hpp"
#include "decode/step_trials.hpp"
#include "model/definition/checks.hpp"
#include "model/definition/definition.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/language/visible_names.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/op/op.hpp"

namespace xtape::cli {
namespace {

struct CheckArguments {
  DefinitionOptions definition;
  std::string with;
  bool play = false;
  std::vector<std::string> fix;
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

/// Checks that lines know what they use, and use what is declared. Prints warnings.
void check_uses(const model::Definition& definition) {
  std::vector<std::string> warnings;
  model::check_names(definition, builtin_ops(), true, &warnings);
  for (const std::string& warning : warnings) std::cerr << "warning: " << warning << '\n';
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
  Recipe measured = recipe;
  measured.trainer.privacy = {};  // sets are not drawn from
  for (const auto& set : splits.sets(recipe, tokenizers)) train::try_evaluation(model, measured, tokenizers, *set);
  std::cout << arguments.definition.definition
            << ": recipe, data and definition fit: " << grouped(model.parameter_count()) << " parameters, batches of "
            << joined(batches->blank(),
                      [](const auto& field) { return field.name + " " + to_string(field.value.shape()); })
            << "\n";
}

/// Throws OldForm for a recipe of version 1, in which texts had no quotes.
void refuse_version_1(const JsonNode& recipe) {
  if (recipe.at("xtape").json() != 1) return;
  // Other values are errors of the recipe, which reading it reports with their places.
  if (recipe.has("hyper") && recipe.has("definition") && recipe.at("definition").is_string()) {
    const JsonNode resolved(train::recipe_text(read_file(recipe.file()), recipe.file()), recipe.file(),
                            JsonErrors::definition);
    const auto definition = model::read_definition(find_definition(resolved.at("definition").text()));
    const model::VisibleNames names{.home = definition.get(), .recording = false};
    for (const model::Parameter& each : definition->hyper) {
      const bool is_text = each.initial && each.initial->value.form == model::Form::text;
      if (!is_text || !recipe.at("hyper").has(each.name)) continue;
      const JsonNode value = recipe.at("hyper").at(each.name);
      if (names.of(value.text()) == model::Meaning::definition || value.text().starts_with('\'')) continue;
      const Json quoted = to_string(Hyper::Value(value.text()));
      throw model::OldForm(model::location_of(value), value.json().dump(), quoted.dump());
    }
  }
  throw model::OldForm(model::location_of(recipe.at("xtape")), "1", std::to_string(model::format_version));
}

/// Rewrites a definition or a recipe, as its errors about old forms say, and others of `files` that it uses.
void fix(const std::string& file, const std::vector<std::string>& files) {
  for (;;) try {
      const JsonNode node(read_file(file), file, JsonErrors::definition);
      node.has("data") ? refuse_version_1(node)
                       : static_cast<void>(model::check_names(*model::read_definition(file), builtin_ops()));
      return;
    } catch (const model::OldForm& form) {
      const std::string& wrong = form.location.file;
      if (std::ranges::none_of(files, [&](const auto& each) { return std::filesystem::equivalent(each, wrong); }))
        throw;
      std::string text = read_file(wrong);
      const std::size_t at = text.find(form.old, form.location.begin);
      if (at > text.find('"', form.location.begin + 1)) throw;  // escapes of JSON hide it
      write_file(wrong, text.replace(at, form.old.size(), form.now));
      std::cout << wrong << ", line " << form.location.line << ": " << form.old << " becomes " << form.now << "\n";
    }
}

void check(const CheckArguments& arguments) {
  for (const std::string& file : arguments.fix) fix(file, arguments.fix);
  if (!arguments.fix.empty()) {
    std::cout << joined(arguments.fix) << ": nothing is in the form of an earlier version\n";
    return;
  }
  if (arguments.definition.definition.empty()) throw WrongInput("DEFINITION is required, or --fix with files");
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
  command.get_option("DEFINITION")->required(false);
  add_option(command, "--fix", arguments.fix, "Rewrite these definitions and recipes of earlier versions")
      ->type_name("FILE")
      ->expected(1, 1 << 20)
      ->excludes("DEFINITION");
  add_option(command, "--with", arguments.with,
             "Sizes to record for, such as b=2,t=8 (default: different small primes)");
  command.add_flag("--play", arguments.play,
                   "Play 'logits' on random weights and tokens, step by step as generation does, and compare with the "
                   "whole; in float64 unless --dtype is given");
}

}  // namespace xtape::cli
