/// The location of the project's files.
#pragma once

#include <string>

namespace xtape {

/// The project's folder, without a trailing slash. Only one file is compiled with the path, so that a compiler cache
/// can serve all others in any checkout.
std::string source_root();

}  // namespace xtape
