/// The smallest form of a program that fails.
#pragma once

#include <functional>

#include "oracles.hpp"
#include "program.hpp"

namespace xtape::fuzz {

struct Shrunk {
  Program program;
  Failure failure;
};

/// Makes the program smaller as long as the same check fails: fewer outputs, calls, axes and attributes, smaller sizes.
/// Tries at most `most` programs.
Shrunk shrink(const Program& program, const Failure& failure, int most = 1500);

/// The check of that name.
Check check_named(const std::string& name);

}  // namespace xtape::fuzz
