/// The tape that a command prints or plays: of a function of a definition, or a saved one.
#pragma once

#include <functional>
#include <string>

#include "definition_options.hpp"

namespace xtape::cli {

struct RecordedTape {
  Tape tape;
  NamedVars inputs;
  NamedVars weights;  ///< Of a saved tape, its parameters; of a function, empty until add_gradients.
  NamedVars outputs;
};

/// What the options of `show` and `run` say about the tape.
struct RecordedOptions {
  DefinitionOptions definition;
  std::string function, weights, mode = "eval";
  bool grad = false;
};
/// Adds DEFINITION, --set, --dtype, --mode, --weights, --seed and --grad.
void add_recorded(CLI::App& command, RecordedOptions& options);

/// Loads a saved tape, or records the function, whose inputs `inputs` makes on the tape; then the gradients, if wanted:
/// those of the first output, which must be a scalar, by every weight and every floating input, as outputs grad.NAME.
/// With `zeros`, weights that no file gives stay zero. Throws WrongInput for options of definitions with a saved tape.
using MakeInputs = std::function<NamedVars(const Model& model, Tape& tape)>;
RecordedTape recorded_tape(const CLI::App& command, const RecordedOptions& options, bool zeros,
                           const MakeInputs& inputs);

}  // namespace xtape::cli
