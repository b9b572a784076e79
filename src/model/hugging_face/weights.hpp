/// The weights in the files of a folder in the format of the Hugging Face Hub.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/hugging_face/mapping.hpp"
#include "model/weights/stored_weights.hpp"

namespace xtape::model {

/// Hyper-parameters and the texts of their overrides.
using Overrides = std::vector<std::pair<std::string, std::string>>;

bool has_weights(const std::string& folder);
/// Returns the names of the files that hold the weights, and of their index. Throws FileError.
std::vector<std::string> weight_file_names(const std::string& folder);
/// Opens the files that hold the weights. Throws FileError.
std::vector<ArrayFile> weight_files(const std::string& folder);
/// Returns whether an array of two or more axes has this dtype.
bool has_dtype(const std::vector<ArrayFile>& files, Dtype dtype);

/// Returns the tensors under their current names without the prefix. Of several tensors with the same current name,
/// returns one: the tensor that has this name in the files, or else the first. Throws FileError if another one differs,
/// unless the mapping skips its name. Adds the names of tensors that are skipped for this reason to `skipped`.
std::vector<StoredWeight> tensors_of(const std::vector<ArrayFile>& files, const HuggingFaceMapping& mapping,
                                     std::vector<std::string>& skipped);
/// Removes each stored weight that equals the weight to which it is tied. If the two differ, adds an override that
/// unties them, even if the config ties them.
void settle_ties(const HuggingFaceMapping& mapping, std::vector<StoredWeight>& stored, Overrides& overrides);
/// Replaces the names of tensors by the names of their weights. Removes tensors that the mapping skips, and adds their
/// names to `skipped`.
void name_weights(const HuggingFaceMapping& mapping, const Store& weights, std::vector<StoredWeight>& stored,
                  std::vector<std::string>& skipped);

}  // namespace xtape::model
