/// Loading weights from files, in which they may have other names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "xtape/safetensors.hpp"

namespace xtape::model {

/// An array of a file, and the name of the weight that it is for.
struct StoredWeight {
  std::string weight;
  const ArrayFile* file;
  std::size_t entry;
  const ArrayFile::Entry& described() const { return file->entries()[entry]; }
};

/// The array of each weight of `weights` in `stored`. A weight may be missing if it matches one of the patterns
/// `may_lack`. Throws FileError if other weights are missing, or if arrays are unexpected, present twice or of the
/// wrong shape or dtype. The message names `where` and `model`, and lists the first hundred problems, arrays by their
/// names in the files.
std::map<std::string, const StoredWeight*> check_weights(const Store& weights, const std::vector<StoredWeight>& stored,
                                                         const std::string& where, const std::string& model,
                                                         const std::vector<std::string>& may_lack = {});
/// Reads every weight of `weights` from its array in `stored` into its existing memory; floating dtypes are converted.
/// A weight that is missing keeps its value. Throws as check_weights does, and FileError if an array does not match its
/// checksum, or has finite numbers beyond the range of a half. No weight has changed after an error of these kinds.
void read_weights(const Store& weights, const std::vector<StoredWeight>& stored, const std::string& where,
                  const std::string& model, const std::vector<std::string>& may_lack = {});

}  // namespace xtape::model
