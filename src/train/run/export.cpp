// Writes the models of runs for other programs: folders in the format of the Hugging Face Hub, and adapters.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "data/tokenizers/published.hpp"
#include "model/definition/read_back.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/weights/stored_weights.hpp"
#include "train/predict/predict.hpp"
#include "train/run/run_parts.hpp"
#include "train/run/run_state.hpp"
#include "train/trainer/turns.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape {

namespace {
using Names = std::vector<std::string>;

/// Returns the weights that the run does not train.
Names frozen_weights(const Model& model, const TrainerOptions& options) {
  const Store trained = train::trained_weights(model, options);
  const Names updated = train::updated_weights(model, options);
  Names frozen;
  for (const Store::Entry& weight : model.weights())
    if (!trained.has(weight.name) && !contains(updated, weight.name)) frozen.push_back(weight.name);
  return frozen;
}

/// Returns the weights that the run does not train and that only its losses read, such as those of a teacher.
Names read_by_losses_alone(const Model& model, const Recipe& recipe, const Names& frozen) {
  if (frozen.empty()) return {};
  Names losses = train::Turns(recipe.trainer).functions();
  losses.emplace_back("plain_loss");
  std::set<std::string> read;
  for (const std::string& function : model.functions()) {
    if (contains(losses, function)) continue;
    const auto more = model::weights_read_by(model, function);
    if (!more) return {};
    read.insert(more->begin(), more->end());
  }
  Names alone;
  for (const std::string& name : frozen)
    if (!read.empty() && read.count(name) == 0) alone.push_back(name);
  return alone;
}

std::string some(const Names& names) {
  return std::to_string(names.size()) + (names.size() == 1 ? " weight (" : " weights (") + joined_first(names, 3) + ")";
}

/// Sets the numbers of special tokens in a config: where a prompt begins, and where an answer ends.
void set_tokens(Json& config, const train::Tokenizers& tokenizers, const Tokens& ends, bool translates) {
  const auto set = [&](const char* key, std::int32_t token) {
    if (token >= 0) config[key] = token;
  };
  set("bos_token_id", tokenizers.source->start());
  set("pad_token_id", tokenizers.source->pad());
  if (translates) set("decoder_start_token_id", tokenizers.target->start());
  if (!config.contains("vocab_size")) config["vocab_size"] = tokenizers.target->size();
  if (!ends.empty()) config["eos_token_id"] = ends.size() == 1 ? Json(ends[0]) : Json(ends);
}

/// The names of the files of a tokenizer.
Names tokenizer_files() {
  Names names = model::side_files();
  std::erase_if(names, [](const std::string& name) {
    return name.find("token") == std::string::npos && name.find("vocab") == std::string::npos && name != "merges.txt" &&
           name != "spiece.model";
  });
  return names;
}

/// Writes the tokenizers of a run to a folder with a config. Two tokenizers are in two folders inside it.
void write_tokenizers(const train::Tokenizers& tokenizers, const Recipe& recipe, const Tokens& ends, bool translates,
                      const std::string& folder) {
  for (const std::string& name : tokenizer_files())  // those of the folder from which the run started
    remove_if_possible(path_in(folder, name));
  const bool begins = !translates && train::begins(recipe, *tokenizers.target, tokenizers.chats != nullptr);
  const bool two = tokenizers.source != tokenizers.target;
  save_published(*tokenizers.source, two ? path_in(folder, source_tokenizer_folder) : folder, begins);
  if (two) save_published(*tokenizers.target, path_in(folder, target_tokenizer_folder), begins);
  Json config = model::read_config(folder).json();
  set_tokens(config, tokenizers, ends, translates);
  write_file(path_in(folder, model::config_file), indented(config));
  if (!two) return;
  Json generation = Json::object();
  set_tokens(generation, tokenizers, ends, translates);
  write_file(path_in(folder, std::string(target_tokenizer_folder) + "/generation_config.json"), indented(generation));
}
}  // namespace

std::vector<std::string> Run::save_hugging_face(const std::string& folder, std::optional<Dtype> weights) const {
  const Data& d = *data_;
  const Model& model = *d.model;
  const std::string words = train::hugging_face_folder(d.directory);
  const TokenizerSettings& settings = d.recipe.tokenizer;
  // The tokenizer is that of the folder from which the run started, whose files the run has copied.
  const bool of_folder =
      settings.kind == "saved" && settings.path == d.recipe.from &&
      std::ranges::any_of(tokenizer_files(), [&](const auto& name) { return path_exists(path_in(words, name)); });
  const Names frozen = frozen_weights(model, d.recipe.trainer);
  model::FolderOptions options{is_hugging_face(words) ? words : "", weights, {}, {}};
  options.left_out = read_by_losses_alone(model, d.recipe, frozen);
  options.add = [&](const std::string& beside) {
    const std::vector<std::string>& labels = d.tokenizers.labels;
    if (!labels.empty() && !model::read_config(beside).has("id2label"))
      train::write_labels(model, d.recipe, labels, beside);
    if (d.tokenizers.target && !of_folder)
      write_tokenizers(d.tokenizers, d.recipe, end_tokens(), train::reads(model, "logits", "source"), beside);
  };
  std::vector<std::string> notes;
  const std::string why = model::save_folder(model, folder, options);
  if (!why.empty()) notes.push_back("only xtape reads this folder, and transformers does not: " + why);
  if (why.empty() && !options.left_out.empty())
    notes.push_back("left out, because only the loss reads them and they are frozen: " + some(options.left_out));
  for (const WeightSource& source : d.recipe.start) {
    Names others;
    for (const std::string& name : frozen)
      if (model::matches_weight(name, {source.into}) && (!why.empty() || !contains(options.left_out, name)))
        others.push_back(name);
    if (!others.empty()) notes.push_back("frozen, and from " + source.from + ": " + some(others));
  }
  return notes;
}

bool Run::save_adapter(const std::string& folder, const std::string& base) const {
  const std::string& from = data_->recipe.from;
  if (from.empty())
    throw FileError("'" + data_->directory + "' did not start from a folder: it has no adapters of one");
  train::check_adapters_alone(*data_->model, data_->directory);
  const bool is_there = is_hugging_face(from);
  model::write_adapter(*data_->model, folder, base.empty() ? from : base, is_there ? from : "");
  return is_there;
}

}  // namespace xtape
