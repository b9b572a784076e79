/// The axes of attention.
#pragma once

#include <string>

#include "xtape/attributes.hpp"

namespace xtape {

/// The axis labels of the two equations, and their roles in attention.
struct AttentionLabels {
  std::string q, k, v, scores, y;
  std::string heads;  ///< The labels that all five arrays have: batch and heads.
  char query = 0, key = 0, width = 0, value_width = 0;
};

/// Returns the labels of the equations "scores" and "outputs". The first equation must compute scores of queries by
/// keys, with the keys last. The second must sum over the keys. Its labels are renamed to those of the first. Throws
/// Error if the equations do not describe an attention.
AttentionLabels labels_of_attention(const Attributes& attributes);

}  // namespace xtape
