// Reads the splits of data, and makes their batches.
#include "base/bytes/encodings.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
/// Reads the files of a split.
DataSplit read_split(const Recipe::Data& data, const Recipe::Data::Files& files) {
  DataSplit split;
  for (const std::vector<std::string>& part : files) {
    const std::size_t before = split.size();
    DataPart& read = split.parts.emplace_back(DataPart{part});
    kind_of(data).read(data, read, split);
    read.rows = split.size() - before;
  }
  return split;
}

// The places of the splits, and their names in a cache.
enum : std::size_t { training, validation, test, first_set };
constexpr const char* names[] = {"training", "validation", "test"};
}  // namespace

DataSplits::DataSplits(const Recipe& recipe, const std::string& cache) : splits_(first_set) {
  const Recipe::Data& data = recipe.data;
  const DataKind& kind = kind_of(data);
  for (const std::vector<std::string>& files : data.training)
    for (const std::string& file : files)
      if (!path_exists(file))
        throw FileError("cannot read " + file + ": No such file or directory; give the file with --set data." +
                        kind.files + "=FILE, or its directory with --set data.folder=DIRECTORY");
  splits_[training] = read_split(data, data.training);
  if (data.validation.empty()) {
    splits_[validation].parts = splits_[training].parts;
    splits_[validation].not_utf8 = splits_[training].not_utf8;
    kind.divide(data, splits_[training], splits_[validation]);
  } else {
    splits_[validation] = read_split(data, data.validation);
  }
  if (!data.test.empty()) splits_[test] = read_split(data, data.test);
  for (const auto& [name, files] : data.sets)
    if (splits_.push_back(read_split(data, files)); kind.has_rows && splits_.back().size() == 0)
      throw Error("the validation set '" + name + "' has no rows");
  if (kind.has_rows && splits_[training].size() == 0)
    throw Error("the training split has no rows: " +
                joined(data.training, [](const std::vector<std::string>& files) { return joined(files); }));
  for (DataSplit& split : splits_)
    if (split.tokens) split.facts = facts_of(*split.tokens, split.parts[0].files[0]);
  use_cache(cache);
}

void DataSplits::use_cache(const std::string& folder) {
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const std::string name = i < first_set ? names[i] : "validation-" + std::to_string(i + 1 - first_set);
    splits_[i].cache = folder.empty() || !splits_[i].text.has_files() ? "" : path_in(folder, name);
    recall_checksum(splits_[i]);
  }
}

std::uint64_t DataSplits::checksum() const {
  std::vector<std::uint64_t> checksums;
  for (const DataSplit& split : splits_) {
    checksums.push_back(split.tokens ? split.facts.checksum : split.text.checksum());
    const Images& images = split.images;
    checksums.push_back(checksum_of(images.pixels.data(), images.pixels.size()));
    checksums.push_back(checksum_of(images.labels.data(), images.labels.size() * sizeof images.labels[0]));
    for (const auto& array : split.arrays.arrays)
      checksums.push_back(checksum_of(array.value.data(), array.value.bytes()));
    for (const auto& column : split.columns)
      for (const std::string& text : column) checksums.push_back(checksum_of_piece(text.data(), text.size()));
    checksums.push_back(split.columns.size());
  }
  return checksum_of_pieces(checksums);
}

const DataSplit& DataSplits::evaluated(const Recipe::Data& data, const std::string& on) const {
  if (on.empty()) return splits_[validation];
  for (std::size_t i = 0; i < data.sets.size(); ++i)
    if (data.sets[i].first == on) return splits_[first_set + i];
  if (on != test_split) throw Error("the data has no validation set '" + on + "'");
  if (data.test.empty()) throw Error(std::string("the data has no test split: data.test_") + kind_of(data).files);
  return splits_[test];
}

Tokenizers DataSplits::make_tokenizers(const Recipe& recipe) const {
  return kind_of(recipe.data).tokenizers(recipe, splits_[training]);
}

namespace {
/// The batches of the stages of a recipe. Evaluations have the largest batches of all stages.
class StagedBatches final : public Batches {
 public:
  /// `make` returns the batches of a recipe. It must stay valid.
  using Make = std::function<std::unique_ptr<Batches>(const Recipe&)>;
  StagedBatches(const Recipe& recipe, Make make)
      : recipe_(recipe), make_(std::move(make)), largest_(make_(with_largest(recipe))) {}

  std::int64_t rows() const override { return largest_->rows(); }
  std::int64_t columns() const override { return largest_->columns(); }
  BatchArrays blank() const override { return largest_->blank(); }
  std::uint64_t order() const override {
    std::vector<std::uint64_t> numbers = {static_cast<std::uint64_t>(recipe_.trainer.accumulate)};
    for (const Recipe::Stage& stage : recipe_.stages)
      if (&stage != &recipe_.stages.back()) numbers.push_back(static_cast<std::uint64_t>(stage.steps));
    return checksum_of(numbers.data(), numbers.size() * sizeof numbers[0]) >> 3 | 1;
  }
  void training(std::uint64_t index, BatchArrays& batch) const override {
    const std::uint64_t first = enter(index);
    now_->training(index - first, batch);
  }
  std::string training_place(std::uint64_t index, const std::string& array, std::int64_t row) const override {
    const std::uint64_t first = enter(index);
    return now_->training_place(index - first, array, row);
  }
  bool training_continues(std::uint64_t index) const override {
    const std::uint64_t first = enter(index);
    return now_->training_continues(index - first);
  }
  std::int64_t validation_batches() const override { return largest_->validation_batches(); }
  void validation(std::int64_t index, BatchArrays& batch) const override { largest_->validation(index, batch); }
  bool validation_continues(std::int64_t index) const override { return largest_->validation_continues(index); }
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override {
    largest_->validation_sample(index, batch);
  }

 private:
  static Recipe with_largest(Recipe recipe) {
    for (const Recipe::Stage& stage : recipe.stages) {
      recipe.batch_size = std::max(recipe.batch_size, stage.batch_size);
      recipe.batch_tokens = std::max(recipe.batch_tokens, stage.batch_tokens);
    }
    return recipe;
  }
  /// Makes the batches of the stage of micro-batch `index`, and drops those of other stages. Returns the first
  /// micro-batch of the stage.
  std::uint64_t enter(std::uint64_t index) const {
    std::size_t stage = 0;
    std::uint64_t first = 0;
    for (; stage + 1 < recipe_.stages.size(); ++stage) {
      const auto end = first + static_cast<std::uint64_t>(recipe_.stages[stage].steps * recipe_.trainer.accumulate);
      if (index < end) break;
      first = end;
    }
    if (now_ && stage == stage_) return first;
    Recipe recipe = recipe_;
    const Recipe::Stage& own = recipe.stages[stage];
    if (own.batch_size > 0) recipe.batch_size = own.batch_size;
    if (own.batch_tokens > 0) recipe.batch_tokens = own.batch_tokens;
    if (own.block_size > 0) recipe.data.block_size = own.block_size;
    if (own.max_length > 0) recipe.data.max_length = own.max_length;
    recipe.trainer.seed += 0x9E3779B9 * stage;  // another order of the rows than in the stages before
    now_.reset();
    now_ = make_(recipe);
    stage_ = stage;
    return first;
  }

  Recipe recipe_;
  Make make_;
  std::unique_ptr<Batches> largest_;
  mutable std::unique_ptr<Batches> now_;  // of the stage `stage_`; only one thread uses batches
  mutable std::size_t stage_ = 0;
};

/// Evaluates only some batches: as far apart as possible, or the first ones if their rows continue each other.
class FewerEvaluated final : public Batches {
 public:
  /// `batches` has more than `most` validation batches.
  FewerEvaluated(std::unique_ptr<Batches> batches, std::int64_t most) : all_(std::move(batches)), most_(most) {}

  std::int64_t rows() const override { return all_->rows(); }
  std::int64_t columns() const override { return all_->columns(); }
  BatchArrays blank() const override { return all_->blank(); }
  std::int64_t epoch_batches() const override { return all_->epoch_batches(); }
  RowDraws draws() const override { return all_->draws(); }
  std::uint64_t order() const override { return all_->order(); }
  void training(std::uint64_t index, BatchArrays& batch) const override { all_->training(index, batch); }
  std::string training_place(std::uint64_t index, const std::string& array, std::int64_t row) const override {
    return all_->training_place(index, array, row);
  }
  bool training_continues(std::uint64_t index) const override { return all_->training_continues(index); }
  std::int64_t validation_batches() const override { return most_; }
  void validation(std::int64_t index, BatchArrays& batch) const override { all_->validation(place(index), batch); }
  bool validation_continues(std::int64_t index) const override {
    return continue_ && all_->validation_continues(index);
  }
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override {
    all_->validation_sample(index, batch);
  }

 private:
  std::int64_t place(std::int64_t index) const {
    if (continue_) return index;
    const std::int64_t count = all_->validation_batches();  // index * count / most_, which could overflow:
    return count / most_ * index + count % most_ * index / most_;
  }
  std::unique_ptr<Batches> all_;
  std::int64_t most_;
  bool continue_ = all_->validation_continues(1);
};

std::unique_ptr<Batches> with_fewer_evaluated(std::unique_ptr<Batches> batches, const Recipe& recipe) {
  const std::int64_t most = recipe.evaluate_batches;
  if (most == 0 || batches->validation_batches() <= most) return batches;
  return std::make_unique<FewerEvaluated>(std::move(batches), most);
}
}  // namespace

std::unique_ptr<Batches> DataSplits::batches(const Recipe& recipe, const Tokenizers& tokenizers) const {
  const auto make = [this, tokenizers](const Recipe& of_stage) {
    return kind_of(of_stage.data).batches(of_stage, tokenizers, splits_[training], splits_[validation]);
  };
  return with_fewer_evaluated(recipe.stages.empty() ? make(recipe) : std::make_unique<StagedBatches>(recipe, make),
                              recipe);
}

std::unique_ptr<Batches> DataSplits::batches(const Recipe& recipe, const Tokenizers& tokenizers,
                                             const std::string& on) const {
  const DataKind& kind = kind_of(recipe.data);
  const DataSplit& split = evaluated(recipe.data, on);
  if (!kind.has_rows) return with_fewer_evaluated(kind.batches(recipe, tokenizers, splits_[training], split), recipe);
  // Rows of texts stand in for those of the training split, which then need not be made again. Others must fit them.
  Recipe measured = recipe;
  measured.data.max_length = 0;
  measured.trainer.privacy = {};
  const DataSplit& first = recipe.data.has_tokens() ? split : splits_[training];
  return with_fewer_evaluated(kind.batches(measured, tokenizers, first, split), recipe);
}

std::vector<std::unique_ptr<Batches>> DataSplits::sets(const Recipe& recipe, const Tokenizers& tokenizers) const {
  std::vector<std::unique_ptr<Batches>> made;
  for (const auto& [name, files] : recipe.data.sets) try {
      made.push_back(batches(recipe, tokenizers, name));
    } catch (const FileError&) {
      throw;
    } catch (const Error& error) {
      throw Error("the validation set '" + name + "': " + error.what());
    }
  return made;
}

PairTexts DataSplits::answers(const Recipe& recipe, const std::string& on) const {
  return kind_of(recipe.data).answers(recipe.data, evaluated(recipe.data, on));
}

}  // namespace xtape::train
