/// Shrinks programs that fail a check.
#pragma once

#include <functional>

#include "oracles.hpp"
#include "program.hpp"

namespace xtape::fuzz {

struct Shrunk {
  Program program;
  Failure failure;
};

/// Shrinks the program while the same check fails: fewer outputs, calls, axes and attributes, smaller sizes. Tries at
/// most `most` programs.
Shrunk shrink(const Program& program, const Failure& failure, int most = 1500);

/// The check of that name. Throws Error if there is none.
Check check_named(const std::string& name);

}  // namespace xtape::fuzz
