/// Checks that a written folder contains the model from which it was written.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "xtape/error.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

/// A written folder does not contain the model.
struct NotReadBack : FileError {
  NotReadBack(const std::string& refused, const std::string& because) : FileError(refused + because), why(because) {}
  std::string why;
};

/// Opens the folder as any other program would and returns its model. Uses the definition named `model_type`, or the
/// definition of `model` if there is none. Throws NotReadBack if the weights of the folder do not match the definition,
/// or if the two models have different logits on random tokens. The message says what differs and calls the folder
/// `name`. If the model has no function `logits`, compares the first function that can be played on random inputs
/// instead. If no function can be played, compares the weights. If `base` is not empty, the folder contains adapters,
/// and is opened on top of the model in the folder `base`. In this case, also throws FileError if the hyper-parameters
/// of `base` lead to another computation than those of `model`.
Model read_back(const Model& model, const std::string& folder, const std::string& name, const std::string& model_type,
                const std::string& base = "");

/// Returns the names of the weights that a function reads in mode eval, or nothing if it cannot be recorded for any
/// sizes that are tried.
std::optional<std::set<std::string>> weights_read_by(const Model& model, const std::string& function);

/// Throws FileError if the function computes something else in `model` than in `other`, whose weights do not count. A
/// play of few tokens does not show the effect of every hyper-parameter. For example, a window of attention may be
/// longer than the text. The function is therefore recorded for as many tokens as the model can read, and the
/// recordings are compared. `of_other` says what `other` is: "with the base".
void require_same_computation(const Model& model, const Model& other, const std::string& function,
                              const std::string& of_other);

}  // namespace xtape::model
