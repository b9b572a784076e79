/// Arrays of rows as training data, for definitions with any inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "xtape/csv.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// An input that is made of columns of a CSV file, or of an array of another file.
struct ArrayInput {
  std::string name;
  /// One column: [b]; for a list several, [b, n]. A column "*" of a list stands for all that no input names.
  std::vector<std::string> columns;
  bool list = false;
  bool labels = false;  ///< The column has words: int [b], their indices.
};

/// Arrays of equally many rows (the first axis), named like the inputs of `loss`: float32 or int64.
struct ArrayRows {
  BatchArrays arrays;
  std::vector<std::string> labels = {};  ///< The words of an array of labels by index, if there is one …
  std::string labelled = {};             ///< … and its name.
  std::string file = {};                 ///< Where the rows come from …
  std::size_t first = 0;                 ///< … and how many of its rows come before these.
  std::vector<ArrayInput> inputs = {};   ///< For a CSV file: the columns of each array, by name.
  std::size_t size() const;
  std::string place(std::size_t row) const;  ///< "train.npz, row 12".
};

/// Reads rows from a file of arrays, .safetensors or .npz (less than 4 GiB), or of comma-separated values. Floats
/// become float32, integers and bools int64. Without `inputs`, all arrays of a file are inputs of their names; CSV
/// files need them. Throws FileError as the readers do, and for arrays that differ in rows, and Error for inputs that
/// do not fit.
ArrayRows read_array_rows(const std::string& path, const std::vector<ArrayInput>& inputs = {},
                          const CsvOptions& csv = {});

struct ArrayBatchesOptions {
  std::int64_t rows = 64;  ///< The most rows of a batch.
  std::uint64_t seed = 0;  ///< Determines the data order.
};

/// Batches of arrays. An epoch has all rows once, in batches whose sizes differ by one at most.
class ArrayBatches : public Batches {
 public:
  /// Throws Error if a split has no row, the splits differ in arrays, shapes or labels, or an option is out of range.
  ArrayBatches(ArrayRows training, ArrayRows validation, const ArrayBatchesOptions& options);
  ~ArrayBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override;
  std::int64_t epoch_batches() const override;
  void training(std::uint64_t index, BatchArrays& batch) const override;
  std::string training_place(std::uint64_t index, const std::string& array, std::int64_t row) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, BatchArrays& batch) const override;
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override;

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
