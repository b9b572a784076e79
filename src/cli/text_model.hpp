/// A model that continues texts, of a run or of a Hugging Face model folder.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "run_options.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {

class TextModel {
 public:
  /// `path` is a run, opened with the given checkpoint, or a folder. Throws WrongInput if it is neither, or its model
  /// does not continue texts.
  TextModel(const std::string& path, const std::string& checkpoint, const InferenceArguments& inference = {});

  Model& model() { return run_ ? run_->model() : *model_; }
  /// The tokens of a text to be continued.
  Tokens prompt(const std::string& text) const { return run_ ? run_->prompt(text) : prompt_of(*tokenizer_, text); }
  const Tokenizer& tokenizer() const { return run_ ? run_->tokenizer() : *tokenizer_; }
  std::int64_t context() const { return context_; }      ///< The context length, in tokens.
  std::int32_t end_token() const { return end_token_; }  ///< -1 if there is none.

 private:
  std::optional<Run> run_;
  std::optional<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::int64_t context_ = 0;
  std::int32_t end_token_ = -1;
};

}  // namespace xtape::cli
