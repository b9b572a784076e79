/// The paths among a command's arguments: their names for people, and the file to write.
#pragma once

#include <string>
#include <vector>

namespace xtape::cli {

/// Returns a name for each path: the part behind the last '/', or the whole path if others have the same part. No two
/// are equal. Throws WrongInput if a path is given twice.
std::vector<std::string> names_of(const std::vector<std::string>& paths);

/// Throws WrongInput if the file `out`, which a command is about to write, is one of its `inputs`.
void check_out(const std::string& out, const std::vector<std::string>& inputs);

}  // namespace xtape::cli
