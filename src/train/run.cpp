#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint.hpp"
#include "loss.hpp"
#include "metrics.hpp"
#include "xtape/train.hpp"

namespace xtape {

namespace fs = std::filesystem;

namespace {
/// The texts of a recipe's data: read once, split once.
TextSplit texts_of(const Recipe& recipe) {
  if (recipe.data.kind == "adder") return {AdderBatches::text(recipe.data.adder), ""};
  return split_text(read_text(recipe.data.text), recipe.data.split);
}

std::unique_ptr<Batches> batches_of(const Recipe& recipe, const TextSplit& texts, const Tokenizer& tokenizer) {
  if (recipe.data.kind == "adder") {
    AdderOptions options = recipe.data.adder;
    options.rows = recipe.batch_size;
    options.seed = recipe.trainer.seed;
    return std::make_unique<AdderBatches>(tokenizer, options);
  }
  const TextBatchesOptions options = {recipe.batch_size, recipe.data.block_size, recipe.trainer.seed};
  return std::make_unique<TextBatches>(tokenizer.encode(texts.training), tokenizer.encode(texts.validation), options);
}

/// What a recipe sets. A run's own definition already holds what its data said.
std::vector<std::pair<std::string, std::string>> hyper_of(const Recipe& recipe) {
  std::vector<std::pair<std::string, std::string>> hyper;
  for (const HyperSetting& setting : recipe.hyper)
    if (setting.from == HyperSetting::From::text) hyper.emplace_back(setting.name, setting.text);
  return hyper;
}

std::vector<std::pair<std::string, std::string>> hyper_of(const Recipe& recipe, std::int64_t vocabulary,
                                                          std::int64_t columns) {
  std::vector<std::pair<std::string, std::string>> hyper = hyper_of(recipe);
  for (const HyperSetting& setting : recipe.hyper)
    if (setting.from != HyperSetting::From::text)
      hyper.emplace_back(setting.name,
                         std::to_string(setting.from == HyperSetting::From::columns ? columns : vocabulary));
  return hyper;
}

Model model_of(const Recipe& recipe, std::vector<std::pair<std::string, std::string>> hyper, bool initialise) {
  ModelOptions options;
  options.seed = recipe.trainer.seed;
  options.initialise = initialise;
  options.hyper = std::move(hyper);
  Model model = Model::load(recipe.definition, options);
  PlayerOptions playing;
  playing.threads = recipe.trainer.threads;
  playing.seed = recipe.trainer.seed;
  model.set_player_options(16, playing);
  return model;
}

/// The recipe as it stands in the run, beside its definition.
std::string text_in_run(const Recipe& recipe) {
  auto json = nlohmann::ordered_json::parse(recipe.text);
  json["definition"] = "definition.json";
  return json.dump(2) + "\n";
}
}  // namespace

struct Run::Data {
  std::string directory;
  Recipe recipe;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Batches> batches;  // null until they are asked for
  std::optional<Model> model;
  std::optional<Trainer> trainer;
  std::int64_t saved = -1;  // the step of the last checkpoint

  const Batches& the_batches() {
    if (!batches) batches = batches_of(recipe, texts_of(recipe), *tokenizer);
    return *batches;
  }
  std::string checkpoints() const { return directory + "/checkpoints"; }

  void save() {
    if (trainer->step() == saved) return;
    trainer->save(checkpoints() + "/" + train::checkpoint_name(trainer->step()));
    saved = trainer->step();
    train::remove_old_checkpoints(checkpoints(), recipe.keep);
  }
};

Run::Run(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

const std::string& Run::directory() const {
  return data_->directory;
}
const Recipe& Run::recipe() const {
  return data_->recipe;
}
Model& Run::model() {
  return *data_->model;
}
const Tokenizer& Run::tokenizer() const {
  return *data_->tokenizer;
}
const Batches& Run::batches() {
  return data_->the_batches();
}

std::int64_t Run::columns() {
  return data_->recipe.data.kind == "text" ? data_->recipe.data.block_size : batches().columns();
}

std::int32_t Run::end_token() {
  return data_->recipe.data.kind == "text" ? -1 : batches().end_token();
}

Run Run::create(const Recipe& recipe, const std::string& directory) {
  if (fs::exists(directory)) throw FileError(directory + " exists already");
  const TextSplit texts = texts_of(recipe);
  const CharacterTokenizer tokenizer(texts.training, recipe.unknown);
  const std::unique_ptr<Batches> batches = batches_of(recipe, texts, tokenizer);
  const Model model = model_of(recipe, hyper_of(recipe, tokenizer.size(), batches->columns()), false);
  train::check_loss(model, *batches);
  // Only now is there anything to be kept: a mistake above leaves no directory behind.
  std::error_code failed;
  fs::create_directories(directory + "/checkpoints", failed);
  if (failed) throw FileError("cannot make " + directory + ": " + failed.message());
  train::write_file(directory + "/definition.json", model.definition_text());
  train::write_file(directory + "/tokenizer.json", tokenizer.to_json());
  train::write_file(directory + "/recipe.json", text_in_run(recipe));
  // The run's own definition is what it trains: random numbers depend on the lines of calls, so that another copy of
  // the definition would draw others after a resume.
  return open(directory);
}

Run Run::open(const std::string& directory, const std::vector<Setting>& settings) {
  const std::string file = directory + "/recipe.json";
  if (!fs::exists(file)) throw FileError(directory + " is not a run: it has no recipe.json");
  auto data = std::make_unique<Data>();
  data->directory = directory;
  data->recipe = Recipe::load(file, settings);
  data->tokenizer = load_tokenizer(directory + "/tokenizer.json");
  const std::vector<std::string> found = train::checkpoints(data->checkpoints());
  data->model = model_of(data->recipe, hyper_of(data->recipe), found.empty());
  if (!found.empty()) data->model->load_weights(found.back() + "/weights.safetensors");
  return Run(std::move(data));
}

Trainer& Run::trainer() {
  Data& d = *data_;
  if (d.trainer) return *d.trainer;
  Trainer trainer(*d.model, d.the_batches(), d.recipe.trainer);
  const std::vector<std::string> found = train::checkpoints(d.checkpoints());
  if (!found.empty()) {
    trainer.load(found.back());
    d.saved = trainer.step();
  }
  return d.trainer.emplace(std::move(trainer));
}

bool Run::train(const Trainer::Callbacks& callbacks) {
  Data& d = *data_;
  Trainer& the_trainer = trainer();
  train::Metrics metrics(d.directory + "/metrics.jsonl", the_trainer.step());
  Trainer::Callbacks own;
  own.step = [&](const StepReport& report) {
    metrics.add(report);
    if (callbacks.step) callbacks.step(report);
  };
  own.evaluation = [&](const Evaluation& evaluation) {
    metrics.add(evaluation);
    if (callbacks.evaluation) callbacks.evaluation(evaluation);
  };
  own.stop = [&] {
    const std::int64_t every = d.recipe.checkpoint_every;
    if (every > 0 && the_trainer.step() % every == 0) d.save();
    return callbacks.stop && callbacks.stop();
  };
  // Where an update fails, nothing is written: the last good checkpoint stays the last.
  const bool finished = the_trainer.fit(d.recipe.fit, own);
  d.save();
  return finished;
}

Evaluation Run::evaluate() {
  Evaluation evaluation = xtape::evaluate(*data_->model, batches());
  if (data_->trainer) {
    evaluation.step = data_->trainer->step();
  } else if (const auto found = train::checkpoints(data_->checkpoints()); !found.empty()) {
    evaluation.step = train::read_state(found.back()).step;
  }
  return evaluation;
}

double Run::sampled_loss(std::int64_t count) {
  return xtape::sampled_loss(*data_->model, batches(), count);
}

}  // namespace xtape
