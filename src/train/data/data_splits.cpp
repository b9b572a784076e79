// Reads the splits of data, and makes their batches.
#include "base/files/durable.hpp"
#include "base/files/encodings.hpp"
#include "base/messages/wording.hpp"
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
}  // namespace

DataSplits::DataSplits(const Recipe& recipe) {
  const Recipe::Data& data = recipe.data;
  const DataKind& kind = kind_of(data);
  for (const std::vector<std::string>& files : data.training)
    for (const std::string& file : files)
      if (!path_exists(file))
        throw FileError("cannot read " + file + ": No such file or directory; give the file with --set data." +
                        kind.files + "=FILE, or its directory with --set data.folder=DIRECTORY");
  training_ = read_split(data, data.training);
  if (data.validation.empty()) {
    validation_.parts = training_.parts;
    validation_.not_utf8 = training_.not_utf8;
    kind.divide(data, training_, validation_);
  } else {
    validation_ = read_split(data, data.validation);
  }
  if (!data.test.empty()) test_ = read_split(data, data.test);
  if (kind.has_rows && training_.size() == 0)
    throw Error("the training split has no rows: " +
                joined(data.training, [](const std::vector<std::string>& files) { return joined(files); }));
}

std::uint64_t DataSplits::checksum() const {
  std::vector<std::uint64_t> checksums;
  for (const DataSplit* split : {&training_, &validation_, &test_}) {
    checksums.push_back(checksum_of(split->text.data(), split->text.size()));
    const Images& images = split->images;
    checksums.push_back(checksum_of(images.pixels.data(), images.pixels.size()));
    checksums.push_back(checksum_of(images.labels.data(), images.labels.size() * sizeof images.labels[0]));
    for (const auto& array : split->arrays.arrays)
      checksums.push_back(checksum_of(array.value.data(), array.value.bytes()));
    for (const auto& column : split->columns)
      for (const std::string& text : column) checksums.push_back(checksum_of_piece(text.data(), text.size()));
    checksums.push_back(split->columns.size());
  }
  return checksum_of_pieces(checksums);
}

const DataSplit& DataSplits::evaluated(const Recipe::Data& data, bool on_test) const {
  if (on_test && test_.parts.empty())
    throw Error(std::string("the data has no test split: data.test_") + kind_of(data).files);
  return on_test ? test_ : validation_;
}

Tokenizers DataSplits::make_tokenizers(const Recipe& recipe) const {
  return kind_of(recipe.data).tokenizers(recipe, training_);
}

std::unique_ptr<Batches> DataSplits::batches(const Recipe& recipe, const Tokenizers& tokenizers, bool on_test) const {
  return kind_of(recipe.data).batches(recipe, tokenizers, training_, evaluated(recipe.data, on_test));
}

PairTexts DataSplits::answers(const Recipe& recipe, bool on_test) const {
  return kind_of(recipe.data).answers(recipe.data, evaluated(recipe.data, on_test));
}

}  // namespace xtape::train
