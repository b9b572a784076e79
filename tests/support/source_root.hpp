/// Where the project's files are.
#pragma once

#include <string>

namespace xtape {

/// The project's folder, without a slash at the end. One file alone is compiled with the path, so that all others may come
/// out of a compiler's cache whatever folder they were checked out to.
std::string source_root();

}  // namespace xtape
