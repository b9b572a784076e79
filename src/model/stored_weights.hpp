/// Loading weights from files, in which they may have other names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "xtape/safetensors.hpp"

namespace xtape::model {

/// An array of a file, and the weight that it is for, or that it is one part of: files may hold a weight as an array for
/// each index of its first axis.
struct StoredWeight {
  static constexpr std::int64_t whole = -1;
  std::string weight;
  const ArrayFile* file;
  std::size_t entry;
  std::int64_t part = whole;  ///< The index along the first axis.
  bool is_exact = false;      ///< Whether another shape is an error even if the weight may be missing.
  const ArrayFile::Entry& described() const { return file->entries()[entry]; }
};

/// The names of weights, the numbers of their parts or `whole`, and the arrays of these.
using FoundWeights = std::map<std::pair<std::string, std::int64_t>, const StoredWeight*>;

/// The array or arrays of each weight of `weights` in `stored`. A weight may be missing, or have another shape and not
/// be found, if it matches one of the patterns `may_lack`. Throws FileError if other weights are missing, or if arrays
/// are unexpected, present twice or of the wrong shape or dtype. The message names `where` and `model`, and lists the
/// first hundred problems, arrays by their names in the files.
FoundWeights check_weights(const Store& weights, const std::vector<StoredWeight>& stored, const std::string& where,
                           const std::string& model, const std::vector<std::string>& may_lack = {});
/// Reads every weight of `weights` from its array or arrays in `stored` into its existing memory; floating dtypes are
/// converted. A weight that is missing keeps its value. Throws as check_weights does, and FileError if an array does not
/// match its checksum, or has finite numbers beyond the range of a half. No weight has changed after an error of these
/// kinds.
void read_weights(const Store& weights, const std::vector<StoredWeight>& stored, const std::string& where,
                  const std::string& model, const std::vector<std::string>& may_lack = {});

/// The elements of an array with index `part` along its first axis: copied from it, or written to it.
Array part_of(const Array& array, std::int64_t part);
void set_part(Array& array, std::int64_t part, const Array& elements);

}  // namespace xtape::model
