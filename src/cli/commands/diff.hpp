/// The parts of xtape diff. Each part prints the first difference and returns whether there is none.
#pragma once

#include <string>

#include "cli/play_of.hpp"
#include "cli/recorded.hpp"

namespace xtape::cli {

struct DiffArguments {
  PlayArguments first;
  std::string second;
  RecordedOptions recorded;  ///< The function to record of two definitions. The function is empty for other files.
  double tolerance = 1e-4;
};

/// Whether dtype, shape and bits are equal.
bool is_same(const Array& first, const Array& second);
/// Compares nodes, outputs, and the arrays of parameters.
bool same_tapes(const SavedTape& first, const SavedTape& second);
/// Records the function that the arguments name, from the definition `path`.
RecordedTape definition_recorded(const CLI::App& command, const DiffArguments& arguments, const std::string& path);
/// Returns the recorded tape with all its parameters, as a saved tape has them.
SavedTape saved_form(const RecordedTape& recorded);
/// Compares the first play with the arrays of the second file.
bool same_as_reference(const CLI::App& command, const DiffArguments& arguments);
/// Compares two saved plays: their tapes, the arrays of their inputs, and their draws.
bool same_plays(const std::string& first, const std::string& second);
/// Compares two files of digests.
bool same_digests(const std::string& first, const std::string& second);
/// Compares the losses, gradient norms and weights of two ledgers. A run stands for its ledger. Throws FileError if it
/// has none.
bool same_ledgers(const std::string& first, const std::string& second);
/// Compares the tapes of two plays. Each argument is a recipe, a run or a saved play; a recipe or run stands for its
/// next update. For two runs, also compares their ledgers and weights.
bool same_trainings(const DiffArguments& arguments);

}  // namespace xtape::cli
