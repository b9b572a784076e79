/// Parses the equations of einsum.
#pragma once

#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// A parsed equation. For each operand and for the result, it has one letter per axis, the axis label. Axes covered by
/// an ellipsis have labels too.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
  std::string ellipsis;  ///< The labels of the axes that ellipses cover.
};

/// Parses "ij,jk->ik". Axes covered by an ellipsis get unused letters. Without '->', the result follows NumPy: the axes
/// of the ellipsis come first, then the letters that occur once, in alphabetical order. Throws ShapeError if the text
/// is malformed or does not match the ranks of `shapes`.
Equation parse_equation(const std::string& text, const std::vector<Shape>& shapes);

/// An equation with letters as axis labels. It may be the translation of an equation with words.
struct LabelledEquation {
  std::string text;
  std::string names;  ///< For errors: "q is query, h is head". Empty if the original labels were letters.
};
/// Translates "b query d, b key d -> b query key" to letters. The labels are words if a term has a space between two
/// labels. Otherwise, as in "bqd, bkd -> bqk", every letter is a label, and the text is returned unchanged. Throws
/// ShapeError if a word is not a valid name, or if an equation of words lacks '->'.
LabelledEquation in_labels(const std::string& text);

/// Returns the size of every label of `equation`: 256 entries, indexed by character, with -1 for unused characters.
/// Throws ShapeError if two axes with the same label differ in size. The error quotes `text`. With `broadcast`, an axis
/// of size 1 fits every size.
std::vector<std::int64_t> sizes_of_letters(const Equation& equation, const std::vector<Shape>& shapes,
                                           const std::string& text, bool broadcast = false);

/// Returns the equation of a product of two operands with an additional axis at the given indices of the operands and
/// the result. -1 adds no axis.
std::string with_axis(const std::string& equation, std::int64_t a_axis, std::int64_t b_axis, std::int64_t result_axis);

}  // namespace xtape
