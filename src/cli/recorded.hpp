/// The tape that a command prints or plays: of a function of a definition, or from a file.
#pragma once

#include <functional>
#include <string>

#include "definition_options.hpp"
#include "tape_files.hpp"

namespace xtape::cli {

struct RecordedTape {
  Tape tape;
  NamedVars inputs;
  NamedVars weights;  ///< For a tape from a file, its parameters; for a function, empty until add_gradients.
  NamedVars outputs;
  RecordedLines lines;  ///< For a function.
};

/// What the options of `show` and `run` say about the tape.
struct RecordedOptions {
  DefinitionOptions definition;
  std::string function, weights, mode = "eval";
  bool grad = false;
  InputSizes sizes;  ///< For an ONNX model.
  /// Instead of `weights`: gives arrays, of which those with names of weights are taken. Either all weights are among
  /// them, or none: then they are initial.
  std::function<Store(const Store& weights)> weights_among;
};
/// Adds DEFINITION, --set, --dtype, --mode, --weights, --seed and --grad.
void add_recorded(CLI::App& command, RecordedOptions& options);

/// Loads a tape from a file, or records the function, whose inputs `inputs` makes on the tape; then the gradients, if wanted:
/// those of the first output, which must be a scalar, by every weight and every floating input, as outputs grad.NAME.
/// With `zeros`, weights that no file gives stay zero. Throws WrongInput for options of definitions with another file.
using MakeInputs = std::function<NamedVars(const Model& model, Tape& tape)>;
RecordedTape recorded_tape(const CLI::App& command, const RecordedOptions& options, bool zeros,
                           const MakeInputs& inputs);

/// The elements as another dtype.
Array as_dtype(const Array& array, Dtype dtype);

/// An input to feed.
struct Wanted {
  std::string name;
  Dtype dtype = Dtype::float32;
  bool is_state = false;  ///< A state begins with zeros if the file does not have it.
};
std::vector<Wanted> wanted_by(const Tape& tape, const NamedVars& inputs);
bool is_state(const std::vector<Carry>& states, const Var& input);
/// The arrays for the inputs from a safetensors file, in their order, converted if only their width differs; none for
/// states that the file does not have. Throws WrongInput if arrays are missing or unknown, or integers do not fit.
Store arrays_for(const std::vector<Wanted>& inputs, const std::string& path);
/// The same from arrays of the file `path`, of which others may be among them.
Store arrays_among(const std::vector<Wanted>& inputs, const Store& file, const std::string& path);

}  // namespace xtape::cli
