#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/instruction_set.hpp"
#include "model/definition/checks.hpp"
#include "model/definition/definition.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/language/formula.hpp"
#include "model/weights/stored_weights.hpp"
#include "optim/optimizer.hpp"
#include "ranks/rank_group.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"
#include "train/trainer/turns.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::train {

void check_agreement(ranks::RankGroup& group, const Recipe& recipe) {
  if (group.size() == 1) return;
  ranks::check_agreement(group, "version of xtape", XTAPE_VERSION);
  // Apart from the model, data and recipe, only this affects the bits of results, unless the recipe refuses it.
  if (recipe.trainer.bits != Bits::same)
    ranks::check_agreement(group, "instruction set unless 'bits' is \"same\"", name_of(instruction_set()));
  Json json = JsonText(recipe.text, recipe.name, JsonErrors::definition).root();
  json.erase("threads");
  ranks::check_agreement(group, "recipe", json.dump());
}

void check_agreement(ranks::RankGroup& group, const DataSplits& splits) {
  if (group.size() > 1) ranks::check_agreement(group, "data", "checksum " + std::to_string(splits.checksum()));
}

namespace {
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string first_weights(const std::string& directory) {
  return path_in(directory, first_weights_file);
}

Settings hyper_of(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches) {
  Named<std::int64_t> numbers = {{"labels", std::ssize(tokenizers.labels)}};
  kind_of(recipe.data).add_sizes(tokenizers, batches, numbers);
  Settings hyper;
  for (const HyperSetting& setting : recipe.hyper)
    hyper.emplace_back(
        setting.name, setting.from_data ? model::value_of_formula(setting.text, numbers, "'hyper." + setting.name + "'")
                                        : setting.text);
  return hyper;
}

ModelOptions options_of(const Recipe& recipe, Settings hyper, bool initialise) {
  ModelOptions options;
  options.seed = recipe.trainer.seed;
  options.initialise = initialise;
  options.hyper = std::move(hyper);
  options.weights = recipe.weights;
  if (!recipe.weights.empty())
    for (const std::string& trained : recipe.trainer.trainable) options.weights.put_first(trained, options.dtype);
  return options;
}

void play_as_said(const Recipe& recipe, Model& model) {
  PlayerOptions playing;
  playing.threads = recipe.trainer.threads;
  playing.seed = recipe.trainer.seed;
  playing.precision = recipe.trainer.precision;
  playing.bits = recipe.trainer.bits;
  model.set_player_options(16, playing);
}

/// Returns the number of losses that train the weight.
std::int64_t losses_of(const std::string& name, const TrainerOptions& options) {
  return std::ranges::count_if(options.updates, [&](const LossUpdate& update) { return trains(update, name); });
}

bool is_frozen(const std::string& name, const TrainerOptions& options) {
  if (!options.updates.empty() && losses_of(name, options) == 0) return true;
  const std::size_t group = group_of(name, options.groups);
  if (group < options.groups.size() && options.groups[group].options.frozen) return true;
  return options.trainable.empty() ? model::matches_weight(name, options.frozen)
                                   : !model::matches_weight(name, options.trainable);
}

/// Weights that are trained become floats if they are in blocks only because their file has blocks.
void widen_trained(Model& model, const Recipe& recipe) {
  WeightDtypes wide;
  for (const Store::Entry& entry : model.weights())
    if (is_block(entry.value.dtype()) && !recipe.weights.of(entry.name) && !is_frozen(entry.name, recipe.trainer))
      wide.add(entry.name, model.dtype());
  if (!wide.empty()) model.store_weights_as(wide);
}

void check_vocabulary(const Model& model, const Tokenizer& tokenizer, const std::string& from) {
  const Hyper& hyper = model.hyper();
  if (hyper.has("vocab_size") && tokenizer.size() > hyper.integer("vocab_size"))
    throw Error("the tokenizer has " + std::to_string(tokenizer.size()) + " tokens, but the model of " + from +
                " has only " + std::to_string(hyper.integer("vocab_size")));
}
}  // namespace

Model new_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches, bool initialise) {
  const bool is_read = !recipe.from.empty() || !recipe.start.empty();
  ModelOptions options = options_of(recipe, hyper_of(recipe, tokenizers, batches), initialise || is_read);
  Model model = recipe.from.empty()
                    ? Model::load(recipe.definition, options)
                    : open_hugging_face(recipe.from, options, recipe.definition, recipe.initialise, recipe.adapter);
  if (!options.initialise && !model.weights_from_files().empty()) {
    options.initialise = true;  // the run keeps all initial weights
    model = Model::load(recipe.definition, options);
  }
  widen_trained(model, recipe);
  read_start(model, recipe);
  if (!recipe.from.empty() && tokenizers.target) check_vocabulary(model, *tokenizers.target, recipe.from);
  // Checks the recipe's settings of the model before a run is created.
  if (!recipe.definition.empty())
    model::check_overrides(find_definition(recipe.definition), hyper_of(recipe, tokenizers, batches));
  model::check_weight_patterns(model, "initialise", recipe.initialise);
  for (const auto& row : recipe.weights.rows()) model::check_weight_patterns(model, "weights", {row.first});
  trained_weights(model, recipe.trainer);
  play_as_said(recipe, model);
  return model;
}

void write_labels(const Model& model, const Recipe& recipe, const std::vector<std::string>& labels,
                  const std::string& folder) {
  make_folders(folder);
  Json config = is_hugging_face(folder) ? model::read_config(folder).json() : Json(Json::object());
  config["id2label"] = config["label2id"] = Json::object();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    config["id2label"][std::to_string(i)] = labels[i];
    config["label2id"][labels[i]] = i;
  }
  write_file(path_in(folder, model::config_file), indented(config));
  kind_of(recipe.data).write_export(model, recipe, folder);
}

void write_model(const Model& model, const Recipe& recipe, const std::vector<std::string>& labels,
                 const std::string& directory) {
  write_file(directory + "/definition.json", model.definition_text());
  if (!recipe.from.empty() || !recipe.start.empty() || !model.weights_from_files().empty())
    model.save_weights(first_weights(directory));
  if (!recipe.from.empty()) copy_hugging_face_files(recipe.from, hugging_face_folder(directory));
  if (!labels.empty() && model::parse_definition(model.definition_text(), model.name())->hugging_face)
    write_labels(model, recipe, labels, hugging_face_folder(directory));
}

Model run_model(const Recipe& recipe, const std::string& directory, bool has_checkpoint) {
  const bool from_file = !has_checkpoint && path_exists(first_weights(directory));
  // The definition of a run has the values of all hyper-parameters.
  ModelOptions options = options_of(recipe, {}, !has_checkpoint && !from_file);
  options.original = recipe.original;
  Model model = Model::load(recipe.definition, options);
  if (from_file) model.load_weights(first_weights(directory));
  play_as_said(recipe, model);
  return model;
}

void check_adapters_alone(const Model& model, const std::string& directory) {
  const ArrayFile first(first_weights(directory));
  const std::vector<std::string> adapters = model::adapter_weights(model);
  for (std::size_t i = 0; i < first.entries().size(); ++i) {
    const std::string& name = first.entries()[i].name;
    if (contains(adapters, name)) continue;
    const Array before = first.read(i), now(model.weights().at(name));
    if (std::memcmp(before.data(), now.data(), before.bytes()) != 0)
      throw FileError("'" + directory + "' has trained '" + name +
                      "' besides its adapters: adapters alone are not its model; export it without --adapter");
  }
}

std::string hugging_face_folder(const std::string& directory) {
  return directory + "/hugging_face";
}

std::vector<std::string> updated_weights(const Model& model, const TrainerOptions& options) {
  std::vector<std::string> names = model.updated_weights();
  std::erase_if(names, [&](const std::string& name) { return is_frozen(name, options); });
  return names;
}

Store trained_weights(const Model& model, const TrainerOptions& options) {
  if (!options.frozen.empty() && !options.trainable.empty())
    throw Error("'frozen' and 'trainable' exclude each other: give one of them");
  model::check_weight_patterns(model, "frozen", options.frozen);
  model::check_weight_patterns(model, "trainable", options.trainable);
  for (const OptimizerGroup& group : options.groups)
    model::check_weight_patterns(model, "optimizer.groups", {group.weights});
  for (const LossUpdate& update : options.updates) model::check_weight_patterns(model, "updates", update.trains);
  Store trained;
  const std::vector<std::string> updated = model.updated_weights();
  const std::set<std::string> others(updated.begin(), updated.end());
  for (const Store::Entry& entry : model.weights())
    if (others.count(entry.name) == 0 && !is_frozen(entry.name, options)) trained.add(entry.name, Array(entry.value));
  for (const Store::Entry& entry : trained)
    if (options.simultaneous && losses_of(entry.name, options) > 1)
      throw DefinitionError("weight '" + entry.name +
                            "' is trained by several of the 'updates', which 'simultaneous' losses cannot do");
  for (const Store::Entry& entry : trained)
    if (entry.value.dtype() != model.dtype())
      throw Error("weight '" + entry.name + "' is stored as " + name_of(entry.value.dtype()) +
                  " and cannot be trained: freeze it, or store it as " + name_of(model.dtype()));
  if (trained.empty() && !model.weights().empty())
    throw DefinitionError("'frozen' matches every weight of model '" + model.name() + "': none is left to train");
  return trained;
}

}  // namespace xtape::train
