/// A model's functions, for the arrays of a batch.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::decode {

/// The sizes that a batch's arrays give the names in the signature of `function`. Throws DefinitionError where the
/// function's inputs are not the batch's arrays and, besides, those that are `carried` from one batch to the next.
NamedSizes sizes_of(const Model& model, const std::string& function, const Batch& batch,
                    const std::vector<std::string>& carried = {});

/// Feeds the batch's arrays to the inputs of the same names.
std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch);

}  // namespace xtape::decode
