#include "pair_model.hpp"

#include "commands.hpp"
#include "folder.hpp"
#include "translate.hpp"

namespace xtape::cli {

PairModel::PairModel(const std::string& path, const std::string& checkpoint, std::int64_t threads,
                     const InferenceArguments& inference, const std::shared_ptr<Communicator>& communicator)
    : group_(communicator) {
  as_wrong_input([&] {
    if (is_hugging_face(path)) {
      if (checkpoint != "last") throw WrongInput("--checkpoint needs a run: " + path + " is a model folder");
      open_folder_of_pairs(path, threads, inference);
      return;
    }
    std::vector<Setting> settings = inference.settings();
    if (threads > 0) settings.push_back({"threads", std::to_string(threads)});
    run_ = Run::open(path, settings, CheckpointChoice::parse(checkpoint), communicator);
    run_->model().store_weights_as(inference.dtype(run_->model().dtype()));
    if (!run_->recipe().data.has_pairs())
      throw WrongInput(path + " is a run on data of kind '" + run_->recipe().data.kind +
                       "': it was not trained to translate");
  });
}

void PairModel::open_folder_of_pairs(const std::string& path, std::int64_t threads,
                                     const InferenceArguments& inference) {
  model_ = open_folder(path, inference, threads);
  if (!reads_source(*model_)) throw WrongInput(path + " has a model that continues texts: use xtape generate");
  tokenizers_ = {load_tokenizer(path), load_target_tokenizer(path), {}};
  if (tokenizers_.target->start() < 0 || tokenizers_.target->end() < 0)
    throw WrongInput(path +
                     " has no start or end token for targets: config.json needs \"decoder_start_token_id\" and "
                     "\"eos_token_id\"");
  searcher_.emplace(*model_);
}

std::vector<Translation> PairModel::translate(const std::vector<std::string>& lines, const SearchOptions& options) {
  if (run_) return run_->translate(lines, options);
  return train::translate(*searcher_, tokenizers_, lines, options, 0, group_);
}

}  // namespace xtape::cli
