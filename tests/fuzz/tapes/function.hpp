/// A program as a function of floats, for checks of derivatives.
#pragma once

#include <cstdint>
#include <memory>

#include "subject.hpp"

namespace xtape::fuzz {

/// The program in float64, without carries, and fed with distinct numbers, because equal numbers are kinks of some ops.
struct Function {
  explicit Function(const Recipe& recipe, Sources how = Sources::as_written, Floats floats = Floats::twofold);
  Subject subject;
  Vars inputs, outputs;  ///< Those that are floats and have elements.
};

/// Null if the program is not such a function.
std::unique_ptr<Function> function_of(const Recipe& recipe);

/// Whether the tape stops gradients on purpose, so that differences do not agree with the gradient.
bool withholds(const Tape& tape);

/// sum_i <a_i, b_i>
Var inner(const Vars& a, const Vars& b);

/// Constants with fixed numbers, of the types of `vars`.
Vars numbers_like(Tape tape, const Vars& vars, std::uint64_t seed);

}  // namespace xtape::fuzz
