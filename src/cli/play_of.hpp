/// The play that a command examines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "inspect/node_by_node.hpp"
#include "xtape/inspect.hpp"
#include "xtape/player.hpp"

namespace xtape::cli {

/// The kind of a path, determined by the names in a folder or the keys of a JSON file.
enum class Kind : std::uint8_t { recipe, run, capsule, play, tape, onnx, definition, digests, arrays, ledger };
/// Throws WrongInput if the path is of none of these kinds, and FileError if it cannot be read.
Kind kind_of(const std::string& path);
std::string kind_text(Kind kind);  ///< "a recipe", "a saved tape".

struct PlayArguments {
  std::string what;                         ///< A recipe, a run, a capsule, a saved play or a tape from a file.
  std::string in;                           ///< For a tape from a file: the file with its inputs.
  std::string with;                         ///< For an ONNX model: its dynamic dimensions.
  std::vector<std::string> set;             ///< Settings of a recipe or run.
  std::optional<std::uint64_t> seed, step;  ///< For a tape from a file: the seed and the random step.
  int threads = 0;
  std::string precision, bits;
};
/// Returns the tape of the file `path`. For an ONNX model, the arguments give the sizes.
SavedTape tape_at(const std::string& path, const PlayArguments& arguments);
/// Adds the arguments. Adds --in, --seed and --step only if the command plays.
void add_play(CLI::App& command, PlayArguments& arguments, bool plays = true);
/// Throws WrongInput if an argument has no effect on this kind.
void check_arguments(const PlayArguments& arguments, Kind kind);
/// Returns a play. For a recipe, it is the first play of its training; for a run, the next play. If `plays` is false,
/// inputs may be missing. Throws WrongInput, also for arguments that do not apply to the kind.
RecordedPlay play_of(const PlayArguments& arguments, bool plays = true);
/// Returns the play of a tape on the arrays of the file `arguments.in`. Throws WrongInput.
RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments, bool plays = true);
/// Like play_of above, on arrays of `inputs`, which are the arrays of a file.
RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments, const Store& inputs);
/// Sets threads, precision, bits, seed and step from the arguments.
void set_options(const PlayArguments& arguments, RecordedPlay& play);

}  // namespace xtape::cli
