/// The weights in the files of a folder in the format of the Hugging Face Hub.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hugging_face/mapping.hpp"
#include "stored_weights.hpp"

namespace xtape::model {

/// Hyper-parameters and the texts that override them.
using Overrides = std::vector<std::pair<std::string, std::string>>;

bool has_weights(const std::string& folder);
/// The files that hold the weights, opened. Throws FileError.
std::vector<ArrayFile> weight_files(const std::string& folder);
/// Whether an array of two or more axes has this dtype.
bool has_dtype(const std::vector<ArrayFile>& files, Dtype dtype);

/// The tensors, by their present names without the prefix.
std::vector<StoredWeight> tensors_of(const std::vector<ArrayFile>& files, const HuggingFaceMapping& mapping);
/// Removes each stored weight that equals the one it is tied to. If the two differ, unties them by an override, even if
/// the config ties them.
void settle_ties(const HuggingFaceMapping& mapping, std::vector<StoredWeight>& stored, Overrides& overrides);
/// Replaces the names of tensors by the names of the weights that they are for, and removes those to be skipped.
void name_weights(const HuggingFaceMapping& mapping, const Store& weights, std::vector<StoredWeight>& stored);

}  // namespace xtape::model
