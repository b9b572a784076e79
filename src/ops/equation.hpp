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

/// An equation whose axes are named by letters, in place of one whose axes are named by words.
struct LetteredEquation {
  std::string text;
  std::string names;  ///< For errors: "q is query, h is head"; empty where the axes were letters already.
};
/// "b query d, b key d -> b query key" in letters. An equation is of words where one of its terms has a space between
/// two names; "bqd, bkd -> bqk" is of letters. Throws ShapeError where a word is no name, or '->' is missing.
LetteredEquation in_letters(const std::string& text);

/// The size of every letter of `equation`, by letter ('a' at index 'a'; 0-255). Throws ShapeError, showing `text`,
/// where two sizes disagree; inside ellipses 1 gives way.
std::vector<std::int64_t> sizes_of_letters(const Equation& equation, const std::vector<Shape>& shapes,
                                           const std::string& text);

inline bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

}  // namespace xtape
