#include "cli/paths.hpp"

#include <algorithm>
#include <filesystem>

#include "cli/commands.hpp"

namespace xtape::cli {

namespace {
/// Returns the path without the folders before it. "." and ".." have no other name.
std::string last_part(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  const std::string last = name.filename().string();
  return last.empty() || last == "." || last == ".." ? path : last;
}
}  // namespace

std::vector<std::string> names_of(const std::vector<std::string>& paths) {
  std::vector<std::string> last, names;
  for (const std::string& path : paths) last.push_back(last_part(path));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (std::ranges::count(paths, paths[i]) > 1) throw WrongInput("'" + paths[i] + "' is given twice");
    names.push_back(std::ranges::count(last, last[i]) > 1 ? paths[i] : last[i]);
  }
  return names;
}

void check_out(const std::string& out, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code none;  // one of the files may not exist
    if (std::filesystem::equivalent(out, input, none))
      throw WrongInput("--out " + out + " would replace the input '" + input + "'");
  }
}

}  // namespace xtape::cli
