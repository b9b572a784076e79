// Precompiled header: CLI11 takes six seconds per file to compile, and the library's headers two.
#ifndef XTAPE_CLI_PCH_HPP
#define XTAPE_CLI_PCH_HPP

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "xtape/xtape.hpp"

#endif
