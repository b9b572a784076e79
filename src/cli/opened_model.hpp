/// Opens the models of runs and of Hugging Face model folders.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_options.hpp"
#include "ranks/rank_group.hpp"
#include "train/data/data_kind.hpp"
#include "xtape/decode.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {

/// A Hugging Face model folder, and the folder of its adapters, or "" for none.
struct ModelFolder {
  std::string path, adapter;
};
/// Returns the model folder at `path`, with `adapter` if it is not empty. If `path` is a folder of adapters, returns
/// their base model's folder with these adapters. Returns nullopt for any other path, such as a run.
std::optional<ModelFolder> model_folder(const std::string& path, const std::string& adapter = "");

/// Warns on stderr about ignored entries in a folder's configs.
void warn_of_folder(const ModelFolder& folder, const std::string& definition = "");
/// Opens a folder's model and prints the warnings.
Model open_folder(const ModelFolder& folder, const ModelOptions& options = {});

/// The use of a model: to continue texts, or to translate.
enum class Use : std::uint8_t { texts, pairs };

class OpenedModel {
 public:
  /// `path` is a run, which is opened with the given checkpoint, or a folder. `threads` sets the number of threads if
  /// it is above 0. If `communicator` is not null, its ranks work together. Throws WrongInput if the path is
  /// neither, or if its model does not support this use.
  OpenedModel(Use use, const std::string& path, const std::string& checkpoint, const InferenceArguments& inference = {},
              std::int64_t threads = 0, const std::shared_ptr<Communicator>& communicator = nullptr);

  // For Use::texts:
  Model& model() { return run_ ? run_->model() : *model_; }
  /// Returns the tokens of a text to continue.
  Tokens prompt(const std::string& text) const { return run_ ? run_->prompt(text) : prompt_of(tokenizer(), text); }
  const Tokenizer& tokenizer() const { return run_ ? run_->tokenizer() : *tokenizers_.target; }
  std::int64_t context();  ///< The context length, in tokens.
  Tokens end_tokens() const { return run_ ? run_->end_tokens() : tokenizer().ends(); }
  /// Returns the sampling that a folder asks for: see published_sampling.
  Sampling sampling(const Sampling& otherwise) const {
    return run_ ? otherwise : published_sampling(folder_, otherwise);
  }

  // For Use::pairs:
  const Tokenizer& source_tokenizer() const { return run_ ? run_->source_tokenizer() : *tokenizers_.source; }
  SearchOptions search_options() const { return run_ ? run_->recipe().search : SearchOptions{}; }
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options);

 private:
  void check(Use use, const std::string& path);
  void open(Use use, const ModelFolder& folder, const InferenceArguments& inference, std::int64_t threads);
  std::string folder_;  // "" for a run
  std::optional<Run> run_;
  std::optional<Model> model_;
  std::optional<Searcher> searcher_;
  train::Tokenizers tokenizers_;
  ranks::RankGroup group_;
};

}  // namespace xtape::cli
