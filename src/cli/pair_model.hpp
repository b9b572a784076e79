/// A model that translates, of a run or of a Hugging Face model folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rank_group.hpp"
#include "run_data.hpp"
#include "run_options.hpp"
#include "xtape/decode.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {

class PairModel {
 public:
  /// `path` is a run, opened with the given checkpoint, or a folder. `threads` sets the number of threads if it is
  /// above 0. The ranks of `communicator`, if it is not null, translate together. Throws WrongInput if the path is
  /// neither, or its model does not translate.
  PairModel(const std::string& path, const std::string& checkpoint, std::int64_t threads,
            const InferenceArguments& inference = {}, const std::shared_ptr<Communicator>& communicator = nullptr);

  SearchOptions search_options() const { return run_ ? run_->recipe().search : SearchOptions{}; }
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options);

 private:
  void open_folder_of_pairs(const std::string& path, std::int64_t threads, const InferenceArguments& inference);
  std::optional<Run> run_;
  std::optional<Model> model_;
  std::optional<Searcher> searcher_;
  train::Tokenizers tokenizers_;
  train::RankGroup group_;
};

}  // namespace xtape::cli
