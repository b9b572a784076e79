/// The location of the project's files.
#pragma once

#include <string>

namespace xtape {

/// Returns the project's folder without a trailing slash. Only one file is compiled with the path. A compiler cache can
/// therefore serve all other files in any checkout.
std::string source_root();

}  // namespace xtape
