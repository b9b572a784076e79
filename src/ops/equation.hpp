/// einsum's equations.
#pragma once

#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// An equation without ellipses: a letter for each axis of each operand and of the result.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
  std::string ellipsis;  ///< The letters that stand for what the ellipses cover: sizes of 1 broadcast there.
};

/// Reads "ij,jk->ik". Ellipses become letters that are not in use; a missing result is that of NumPy: the ellipsis,
/// then the letters that stand once, in alphabetical order. Throws ShapeError where the text and the ranks do not
/// agree.
Equation parse_equation(const std::string& text, const std::vector<Shape>& shapes);

/// The size of every letter of `equation`, by letter ('a' at index 'a'; 0-255). Throws ShapeError, showing `text`,
/// where two sizes disagree; inside ellipses 1 gives way.
std::vector<std::int64_t> sizes_of_letters(const Equation& equation, const std::vector<Shape>& shapes,
                                           const std::string& text);

inline bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

}  // namespace xtape
