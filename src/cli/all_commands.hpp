/// Registration of all commands, for main().
#pragma once

#include "commands.hpp"

namespace xtape::cli {

/// Calls add_NAME for every command listed in src/cli/meson.build, in that order.
void add_commands(CLI::App& program);

}  // namespace xtape::cli
