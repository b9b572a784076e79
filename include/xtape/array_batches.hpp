/// Arrays of rows as training data, for definitions with arbitrary inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "xtape/csv.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// An input made from columns of a CSV file, or from an array of another file.
struct ArrayInput {
  std::string name;
  /// A single column gives [b], and a list of n columns gives [b, n]. "*" in a list stands for all columns that no
  /// input names.
  std::vector<std::string> columns;
  bool list = false;
  bool labels = false;  ///< Whether the column is categorical. The input is then int [b], the indices of its labels.
};

/// Arrays with equally many rows (the first axis), named like the inputs of `loss`: float32 or int64.
struct ArrayRows {
  BatchArrays arrays;
  std::vector<std::string> labels = {};  ///< The labels of a categorical array by index, if there is such an array.
  std::string labelled = {};             ///< The name of the categorical array.
  std::string file = {};                 ///< The file of the rows.
  RowNumbers numbers = {};               ///< The numbers of these rows in the file.
  std::vector<ArrayInput> inputs = {};   ///< For a CSV file: the columns of each array, by name.
  std::size_t size() const;
  std::string place(std::size_t row) const;  ///< "train.npz, row 12".
};

/// Reads rows from a file of arrays, .safetensors or .npz (less than 4 GiB), or from a CSV file. Floats become float32;
/// integers and bools become int64. Without `inputs`, all arrays of a file are inputs with the same names. CSV files
/// need `inputs`. Throws FileError if the file cannot be read or its arrays differ in the number of rows, Error if an
/// input does not fit the file.
ArrayRows read_array_rows(const std::string& path, const std::vector<ArrayInput>& inputs = {},
                          const CsvOptions& csv = {});

struct ArrayBatchesOptions {
  std::int64_t rows = 64;  ///< The most rows of a batch.
  std::uint64_t seed = 0;  ///< Determines the data order.
};

/// Batches of arrays. An epoch contains each row once. The sizes of its batches differ by at most one.
class ArrayBatches : public Batches {
 public:
  /// Throws Error if a split has no row, the arrays, shapes or labels of the splits differ, or an option is out of
  /// range.
  ArrayBatches(ArrayRows training, ArrayRows validation, const ArrayBatchesOptions& options);
  ~ArrayBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override;
  std::int64_t epoch_batches() const override;
  std::uint64_t order() const override;
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
