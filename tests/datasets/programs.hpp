/// Runs the programs of examples/data.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "folders.hpp"
#include "xtape/text.hpp"

/// Runs a program without showing its messages, and returns its exit code.
inline int run_program(const std::string& name, const std::string& arguments) {
  const int status = std::system((XTAPE_DATA_PROGRAMS + name + " " + arguments + " 2>/dev/null").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
