// CLI11 takes six seconds a file to compile, and the library's headers two; with this, once.
#ifndef XTAPE_CLI_PCH_HPP
#define XTAPE_CLI_PCH_HPP

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "xtape/xtape.hpp"

#endif
