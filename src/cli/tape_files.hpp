/// Tapes from files: files written by Tape::save, and ONNX models. Commands treat both alike.
#pragma once

#include <string>

#include "commands.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/tape.hpp"

namespace xtape::cli {

bool is_onnx(const std::string& path);       ///< The name of the file decides.
bool is_tape_file(const std::string& path);  ///< A saved tape or an ONNX model.

/// Determines the dynamic dimensions of an ONNX model: by the array for the input, or else by the name of the size.
struct InputSizes {
  Store arrays;
  NamedSizes named;
};

/// Loads a saved tape, or records an ONNX model. `weights` replace parameters by name. Throws WrongInput if a size is
/// not determined, if the model lacks a name, or if the file is an ONNX model and the program cannot read these.
SavedTape load_tape(const std::string& path, const InputSizes& sizes = {}, const Store& weights = {});

}  // namespace xtape::cli
