// CLI11 takes six seconds a file to compile; with this, once.
#ifndef XTAPE_CLI_PCH_HPP
#define XTAPE_CLI_PCH_HPP

#include <CLI/CLI.hpp>

#endif
