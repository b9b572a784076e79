/// The play that a command looks into.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"
#include "xtape/inspect.hpp"

namespace xtape::cli {

struct PlayArguments {
  std::string what;              ///< A recipe, a run, a capsule or a saved tape.
  std::string in;                ///< Of a saved tape: the file with its inputs.
  std::vector<std::string> set;  ///< Settings of a recipe.
  int threads = 0;
  std::string precision;  ///< Of a saved tape; of a recipe it is a setting.
};
/// Adds the arguments.
void add_play(CLI::App& command, PlayArguments& arguments);
/// Of a recipe: the first play of its training; of a run: the next one. Throws WrongInput.
RecordedPlay play_of(const PlayArguments& arguments);
/// The play of a tape, on the arrays of the file `arguments.in`. Throws WrongInput.
RecordedPlay play_of(const SavedTape& tape, const PlayArguments& arguments);
/// Sets threads and precision as the arguments say.
void set_options(const PlayArguments& arguments, RecordedPlay& play);

}  // namespace xtape::cli
