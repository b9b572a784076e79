/// The axes of attention.
#pragma once

#include <string>

#include "xtape/attributes.hpp"

namespace xtape {

/// The axis labels of the two equations, and their roles in attention.
struct AttentionLabels {
  std::string q, k, v, scores, y;
  std::string heads;  ///< The labels of the batch and head axes, which q, k, v, scores and y all have.
  char query = 0, key = 0, width = 0, value_width = 0;
};

/// Returns the labels of the equations "scores" and "outputs". The equation "scores" must compute an array with an axis
/// of queries and, as the last axis, the keys. The equation "outputs" must sum over the keys. The labels of "outputs"
/// are renamed to those of "scores". Throws Error if the equations do not describe an attention.
AttentionLabels labels_of_attention(const Attributes& attributes);

}  // namespace xtape
