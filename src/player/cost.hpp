/// What a step of a plan costs, as far as shapes tell.
#pragma once

#include "xtape/op.hpp"

namespace xtape {

struct Cost {
  double flops = 0;  ///< Of products alone: a multiplication and an addition for each term.
  double bytes = 0;  ///< Read and written, every element of an operand or result once.

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Of a kernel on these operands. A scan's is what its body says.
Cost cost_of(const KernelCall& call);
/// Of moving the elements of `from`, over an array of `type`.
Cost cost_of_copy(const ValueType& type, const Layout& from);

}  // namespace xtape
