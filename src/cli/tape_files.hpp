/// Tapes from files: those that Tape::save wrote, and ONNX models, which commands treat alike.
#pragma once

#include <string>

#include "commands.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/tape.hpp"

namespace xtape::cli {

bool is_onnx(const std::string& path);       ///< Judged by its name.
bool is_tape_file(const std::string& path);  ///< A saved tape or an ONNX model.

/// What decides the sizes that an ONNX model leaves open: an array for the input, else the name of the size.
struct InputSizes {
  Store arrays;
  NamedSizes named;
};

/// Loads a saved tape, or records an ONNX model. `weights` replace parameters by name. Throws WrongInput for sizes that
/// nothing decides, for names that the model does not have, and for ONNX models if the program cannot read them.
SavedTape load_tape(const std::string& path, const InputSizes& sizes = {}, const Store& weights = {});

}  // namespace xtape::cli
