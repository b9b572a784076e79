/// Prints programs as text, to investigate failures.
#pragma once

#include <string>
#include <vector>

#include "program.hpp"

namespace xtape::fuzz {

struct Heading {
  std::string seed;   ///< "seed 12".
  std::string check;  ///< The check that failed; empty if none did.
};

/// A test case that records the program and runs every check; it can be copied to kept_test.cpp.
std::string as_cpp(const Program& program, const Heading& heading);

/// The program as a function of a definition, without gradients and the steps that depend on them, which definitions
/// cannot express. Its inputs are the sources.
struct Definition {
  std::string text;
  std::vector<int> inputs;   ///< The sources, in the order of the inputs.
  std::vector<Ref> results;  ///< The results of the function.
};
Definition definition_of(const Program& program);
std::string as_definition(const Program& program);

}  // namespace xtape::fuzz
