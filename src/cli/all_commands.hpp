/// All commands at once, for main().
#pragma once

#include "commands.hpp"

namespace xtape::cli {

/// Calls add_NAME of every file listed in src/cli/meson.build, in that order.
void add_commands(CLI::App& program);

}  // namespace xtape::cli
