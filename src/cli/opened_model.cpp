#include "cli/opened_model.hpp"

#include <algorithm>
#include <iostream>

#include "cli/commands.hpp"
#include "train/predict/predict.hpp"

namespace xtape::cli {

std::optional<ModelFolder> model_folder(const std::string& path, const std::string& adapter) {
  const bool adapters = is_adapter(path);
  if (!adapter.empty() && !is_hugging_face(path))
    throw WrongInput("--adapter needs the model folder that it adapts, and " + path +
                     (adapters ? " has adapters itself" : " is none"));
  if (adapters) return ModelFolder{base_of_adapter(path), path};
  if (is_hugging_face(path)) return ModelFolder{path, adapter};
  return std::nullopt;
}

void warn_of_folder(const ModelFolder& folder, const std::string& definition) {
  for (const std::string& warning : hugging_face_warnings(folder.path, definition, folder.adapter))
    std::cerr << "warning: " << warning << '\n';
}

Model open_folder(const ModelFolder& folder, const ModelOptions& options) {
  Model model = open_hugging_face(folder.path, options, "", {}, folder.adapter);
  warn_of_folder(folder);
  return model;
}

OpenedModel::OpenedModel(Use use, const std::string& path, const std::string& checkpoint,
                         const InferenceArguments& inference, std::int64_t threads,
                         const std::shared_ptr<Communicator>& communicator)
    : group_(communicator) {
  as_wrong_input([&] {
    const std::optional<ModelFolder> folder = model_folder(path, inference.adapter);
    if (!folder) {
      std::vector<Setting> settings = inference.settings();
      if (threads > 0) settings.push_back({"threads", std::to_string(threads)});
      run_ = Run::open(path, settings, CheckpointChoice::parse(checkpoint), communicator);
      run_->model().store_weights_as(inference.dtypes());
      PlayerOptions playing = run_->model().player_options();
      playing.caches = dtype_named(inference.caches);
      run_->model().set_player_options(16, playing);
      return check(use, path);
    }
    folder_ = folder->path;
    if (checkpoint != "last") throw WrongInput("--checkpoint needs a run: " + path + " is a model folder");
    open(use, *folder, inference, threads);
  });
}

void OpenedModel::check(Use use, const std::string& path) {
  try {
    use == Use::texts ? train::check_continues(model(), tokenizer()) : train::check_translates(model(), tokenizer());
  } catch (const Error& error) {
    throw WrongInput(path + ": " + error.what());
  }
}

void OpenedModel::open(Use use, const ModelFolder& folder, const InferenceArguments& inference, std::int64_t threads) {
  const Dtype in_files = stored_weights(folder.path);
  const Dtype wanted = inference.dtype(in_files);
  ModelOptions options;
  if (wanted == in_files && !is_block(wanted)) options.weights = wanted;
  if (is_block(wanted)) options.weights = inference.dtypes();  // blocks are made weight by weight
  model_ = open_folder(folder, options);
  if (options.weights.empty()) model_->store_weights_as(inference.dtypes());
  PlayerOptions playing;
  playing.threads = ranks::threads_of(group_, static_cast<int>(threads));
  if (!inference.precision.empty()) playing.precision = precision_named(inference.precision);
  playing.caches = dtype_named(inference.caches);
  if (!inference.bits.empty()) playing.bits = bits_named(inference.bits);
  model_->set_player_options(16, playing);
  tokenizers_.source = load_tokenizer(folder.path);
  tokenizers_.target = use == Use::pairs ? load_target_tokenizer(folder.path) : tokenizers_.source;
  check(use, folder.path);
  if (use == Use::texts) return;
  searcher_.emplace(*model_);
}

std::int64_t OpenedModel::context() {
  if (run_ && run_->recipe().data.has_tokens()) return run_->columns();
  for (const char* name : {"max_positions", "n_positions"})
    if (model().hyper().has(name)) return model().hyper().integer(name);
  return 1024;  // for models without a maximum position
}

std::vector<Translation> OpenedModel::translate(const std::vector<std::string>& lines, const SearchOptions& options) {
  if (run_) return run_->translate(lines, options);
  SearchOptions ended = options;
  ended.ends = tokenizers_.target->ends();
  return train::translate(*searcher_, tokenizers_, lines, ended, 0, group_);
}

}  // namespace xtape::cli
