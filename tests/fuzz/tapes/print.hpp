/// Programs as text, for those who look into what failed.
#pragma once

#include <string>
#include <vector>

#include "program.hpp"

namespace xtape::fuzz {

struct Heading {
  std::string seed;   ///< "seed 12".
  std::string check;  ///< What failed; empty where nothing did.
};

/// A test case that records the program and tries every check: it can be kept in kept_test.cpp as it stands.
std::string as_cpp(const Program& program, const Heading& heading);

/// The program's function as a definition, as far as definitions reach: not gradients, and what depends on them. Its
/// inputs are the sources.
struct Definition {
  std::string text;
  std::vector<int> inputs;   ///< The sources, in the order of the inputs.
  std::vector<Ref> results;  ///< What the function gives.
};
Definition definition_of(const Program& program);
std::string as_definition(const Program& program);

}  // namespace xtape::fuzz
