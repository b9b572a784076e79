/// The play that a command looks into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "xtape/inspect.hpp"
#include "xtape/player.hpp"

namespace xtape::cli {

/// What a path names, judged by the names in a folder and the keys of a JSON file.
enum class Kind : std::uint8_t { recipe, run, capsule, play, tape, onnx, definition, digests, arrays };
/// Throws WrongInput if there is nothing of these kinds, FileError if it cannot be read.
Kind kind_of(const std::string& path);
std::string kind_text(Kind kind);  ///< "a recipe", "a saved tape".

struct PlayArguments {
  std::string what;                         ///< A recipe, a run, a capsule, a saved play or a tape from a file.
  std::string in;                           ///< For a tape from a file: the file with its inputs.
  std::string with;                         ///< For an ONNX model: its open sizes.
  std::vector<std::string> set;             ///< Settings of a recipe or run.
  std::optional<std::uint64_t> seed, step;  ///< For the random numbers of a tape from a file.
  int threads = 0;
  std::string precision;
};
/// The tape of the file `path`, and for an ONNX model the sizes that the arguments give.
SavedTape tape_at(const std::string& path, const PlayArguments& arguments);
/// Adds the arguments; --in, --seed and --step only if the command plays.
void add_play(CLI::App& command, PlayArguments& arguments, bool plays = true);
/// Refuses arguments that would have no effect on what is of this kind: throws WrongInput.
void check_arguments(const PlayArguments& arguments, Kind kind);
/// For a recipe, the first play of its training; for a run, the next one. With `plays` false, inputs may be missing.
/// Throws WrongInput, also for arguments that do not go with the kind.
RecordedPlay play_of(const PlayArguments& arguments, bool plays = true);
/// The play of a tape, on the arrays of the file `arguments.in`. Throws WrongInput.
RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments, bool plays = true);
/// The same on arrays among `inputs`, which are those of a file.
RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments, const Store& inputs);
/// The arrays of the play's inputs, to feed its player.
std::vector<Feed> feeds_of(const RecordedPlay& play);
/// Sets threads and precision as the arguments say.
void set_options(const PlayArguments& arguments, RecordedPlay& play);

}  // namespace xtape::cli
