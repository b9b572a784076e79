/// The parts of xtape diff. Each prints the first difference, and returns whether there is none.
#pragma once

#include <string>

#include "play_of.hpp"
#include "recorded.hpp"

namespace xtape::cli {

struct DiffArguments {
  PlayArguments first;
  std::string second;
  RecordedOptions recorded;  ///< For definitions: the function to record; empty: they are not definitions.
  double tolerance = 1e-4;
};

/// A tape and the values that it is for, by name: of a saved tape or play, or of a function of a definition.
struct TapeOutputs {
  Tape tape;
  NamedVars outputs;
};
/// Nodes, outputs, and the arrays of parameters.
bool same_tapes(const TapeOutputs& first, const TapeOutputs& second);
/// The function that the arguments name, of the definition `path`.
RecordedTape definition_recorded(const CLI::App& command, const DiffArguments& arguments, const std::string& path);
/// As a saved tape would be.
SavedTape saved_form(const RecordedTape& recorded);
/// The first play and the arrays of the second file.
bool same_as_reference(const CLI::App& command, const DiffArguments& arguments);
/// Two saved plays: their tapes, the arrays of their inputs, and their draws.
bool same_plays(const std::string& first, const std::string& second);
/// Two files of digests.
bool same_digests(const std::string& first, const std::string& second);
/// The updates that two recipes or runs play, or a saved play; of two runs also their losses and weights.
bool same_trainings(const DiffArguments& arguments);

}  // namespace xtape::cli
