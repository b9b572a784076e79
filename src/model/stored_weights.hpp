/// Weights in files, which may have other names there.
#pragma once

#include <string>
#include <vector>

#include "xtape/safetensors.hpp"

namespace xtape::model {

/// An array of a file, and the weight that it is meant for.
struct StoredWeight {
  std::string weight;
  const ArrayFile* file;
  std::size_t entry;
  const ArrayFile::Entry& described() const { return file->entries()[entry]; }
};

/// Reads every weight of `weights` from its place, in memory that is theirs already; floating dtypes are converted.
/// Throws FileError, naming `where` and model `model`, that lists the weights (the first hundred) that are missing,
/// unexpected, there twice or of the wrong shape or dtype, by their names in the files, and FileError where an array
/// does not have its checksum; then no weight has changed. Weights that match one of the patterns `may_lack` stay as they
/// are where they are missing.
void read_weights(const Store& weights, const std::vector<StoredWeight>& stored, const std::string& where,
                  const std::string& model, const std::vector<std::string>& may_lack = {});

}  // namespace xtape::model
