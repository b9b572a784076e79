/// Models that go on with texts: those of runs, and those of folders as the Hugging Face Hub has them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "xtape/train.hpp"

namespace xtape::cli {

class TextModel {
 public:
  /// `path` is a run, whose checkpoint is chosen, or a folder. Throws WrongInput where it is neither, or a run on
  /// sentence pairs.
  TextModel(const std::string& path, const std::string& checkpoint);

  Model& model() { return run_ ? run_->model() : *model_; }
  /// Of a text to be continued.
  Tokens prompt(const std::string& text) const { return run_ ? run_->prompt(text) : prompt_of(*tokenizer_, text); }
  const Tokenizer& tokenizer() const { return run_ ? run_->tokenizer() : *tokenizer_; }
  std::int64_t context() const { return context_; }      ///< The most tokens that it sees at once.
  std::int32_t end_token() const { return end_token_; }  ///< -1 where there is none.

 private:
  std::optional<Run> run_;
  std::optional<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::int64_t context_ = 0;
  std::int32_t end_token_ = -1;
};

}  // namespace xtape::cli
