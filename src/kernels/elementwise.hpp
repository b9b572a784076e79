/// The loops of the elementwise ops.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xtape/literal.hpp"

namespace xtape {

/// A call of an elementwise op.
struct ElementCall {
  std::string op;                       ///< Its name; of gelu and gelu_grad, with "_tanh" or "_erf".
  Dtype dtype = Dtype::float32;         ///< Of the operands that are not masks.
  Dtype to = Dtype::float32;            ///< Of the result, if the op is cast.
  std::vector<Literal> constants = {};  ///< Of masked_fill: the value; of clip: the bounds.
};

/// Computes `count` dense elements. The output may have the address of an input of the same element size.
using ElementLoop = std::function<void(const void* const* in, void* out, std::int64_t count)>;

/// Throws Error if there is no loop for the op.
ElementLoop make_element_loop(const ElementCall& call);

}  // namespace xtape
