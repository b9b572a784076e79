/// The tape that a command prints or plays: a function of a definition, or a tape from a file.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/run_options.hpp"
#include "xtape/player.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/tape.hpp"

namespace xtape::cli {

// Files of digests. They contain the hashes of the values of a play and the settings of the play.

struct DigestFile {
  std::vector<std::pair<std::string, std::string>> play;  ///< The settings of the play: "instruction set", "avx512" …
  std::vector<Digest> digests;
};
/// Writes the digests of the player's last play. Throws FileError.
void save_digests(const std::string& path, const Player& player,
                  const std::vector<std::pair<std::string, std::string>>& play);
/// Throws FileError with file and line if the file is not a file of digests.
DigestFile load_digests(const std::string& path);

// Tapes from files: files written by Tape::save, and ONNX models. Commands treat both alike.

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

/// For a function, `parameters` are its weights if gradients are wanted, and otherwise empty.
struct RecordedTape : SavedTape {
  RecordedLines lines;  ///< The lines, for a function.
};

/// What the options of `show` and `run` specify about the tape.
struct RecordedOptions {
  DefinitionOptions definition;
  std::string function, weights, mode = "eval";
  bool grad = false;
  InputSizes sizes;  ///< The sizes, for an ONNX model.
  /// If not empty, takes the place of the option `weights`. The function receives the weights of the model and returns
  /// arrays. The arrays with the names of weights become the values of these weights. The result must have an array for
  /// every weight or for none. If it has none, the weights keep their initial values.
  std::function<Store(const Store& weights)> weights_among;
};
/// Adds DEFINITION, --set, --dtype, --mode, --weights, --seed and --grad.
void add_recorded(CLI::App& command, RecordedOptions& options);

/// Loads a tape from a file, or records the function on inputs that `inputs` creates on the tape. If requested, adds
/// outputs grad.NAME. They are the gradients of the first output with respect to every weight and every floating input.
/// The first output must then be a scalar. With `zeros`, weights that no file sets stay zero. Throws WrongInput if
/// options for definitions are given with another kind of file.
using MakeInputs = std::function<NamedVars(const Model& model, Tape& tape)>;
RecordedTape recorded_tape(const CLI::App& command, const RecordedOptions& options, bool zeros,
                           const MakeInputs& inputs);

/// Converts the elements to another dtype.
Array as_dtype(const Array& array, Dtype dtype);

/// An input to feed.
struct Wanted {
  std::string name;
  Dtype dtype = Dtype::float32;
  bool is_state = false;  ///< A state begins with zeros if the file does not have it.
};
std::vector<Wanted> wanted_by(const Tape& tape, const NamedVars& inputs);
bool is_state(const std::vector<Carry>& states, const Var& input);
/// Returns the arrays for the inputs from a safetensors file, in the order of the inputs. Converts an array if only the
/// width of its dtype differs. Leaves out states that the file lacks. Throws WrongInput if arrays are missing or
/// unknown, or if integers do not fit.
Store arrays_for(const std::vector<Wanted>& inputs, const std::string& path);
/// Like arrays_for, but takes the arrays from `file`, the content of the file `path`. It may contain more arrays.
Store arrays_among(const std::vector<Wanted>& inputs, const Store& file, const std::string& path);

}  // namespace xtape::cli
