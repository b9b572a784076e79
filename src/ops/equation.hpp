/// Parsing of einsum's equations.
#pragma once

#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// A parsed equation: one letter, the axis label, for each axis of each operand and of the result. Axes that an
/// ellipsis covers have labels too.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
  std::string ellipsis;  ///< Labels of the axes that ellipses cover. Only along these do sizes of 1 broadcast.
};

/// Parses "ij,jk->ik". Axes that an ellipsis covers get unused letters. Without '->' the result is that of NumPy: the
/// axes of the ellipsis, then the letters that occur once, in alphabetical order. Throws ShapeError if the text is
/// malformed or does not match the ranks of `shapes`.
Equation parse_equation(const std::string& text, const std::vector<Shape>& shapes);

/// An equation with letters as axis labels, translated from one that may have words.
struct LabelledEquation {
  std::string text;
  std::string names;  ///< For errors: "q is query, h is head"; empty if the labels were letters already.
};
/// Translates "b query d, b key d -> b query key" to letters. The labels are words if one of the terms has a space
/// between two of them. Otherwise, as in "bqd, bkd -> bqk", every letter is a label, and the text is returned
/// unchanged. Throws ShapeError if a word is not a valid name, or if an equation of words lacks '->'.
LabelledEquation in_labels(const std::string& text);

/// The size of every label of `equation`: 256 entries, indexed by character, -1 for unused ones. Sizes of 1 broadcast
/// along axes of an ellipsis. Throws ShapeError, quoting `text`, if two axes with the same label differ in size.
std::vector<std::int64_t> sizes_of_letters(const Equation& equation, const std::vector<Shape>& shapes,
                                           const std::string& text);

inline bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

/// The equation of a product of two operands with a further axis at the given indices of the operands and the result; -1
/// adds none.
std::string with_axis(const std::string& equation, std::int64_t a_axis, std::int64_t b_axis, std::int64_t result_axis);

}  // namespace xtape
