/// Tapes from files: files written by Tape::save, and ONNX models. Commands treat both alike.
#pragma once

#include <string>

#include "cli/commands.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/tape.hpp"

namespace xtape::cli {

bool is_onnx(const std::string& path);       ///< The name of the file decides.
bool is_tape_file(const std::string& path);  ///< A saved tape or an ONNX model.

/// The values of the dynamic dimensions of an ONNX model. If `arrays` has an array for an input, the shape of the array
/// determines the dimensions of the input. Otherwise `named` has the dimensions by name.
struct InputSizes {
  Store arrays;
  NamedSizes named;
};

/// Loads a saved tape, or records an ONNX model. `weights` replace parameters by name. Throws WrongInput if a dynamic
/// dimension has no value, if the model has no dimension or weight of a given name, or if the file is an ONNX model and
/// the program was built without ONNX.
SavedTape load_tape(const std::string& path, const InputSizes& sizes = {}, const Store& weights = {});

}  // namespace xtape::cli
