/// Checks that a folder that was written is the model that it was written from.
#pragma once

#include <string>

#include "xtape/model.hpp"

namespace xtape::model {

/// Opens the folder as a stranger would, with the definition that is named like `model_type` or, if there is none, with
/// that of `model`, and returns its model. Throws FileError, which says what differs and calls the folder `name`, if
/// its weights are not those that the definition has, or its logits on random tokens differ from those of `model`. The
/// first function that plays on random inputs takes the place of missing logits; if none does, the weights are
/// compared.
Model read_back(const Model& model, const std::string& folder, const std::string& name, const std::string& model_type);

}  // namespace xtape::model
