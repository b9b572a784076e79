/// The cost of a plan's step, estimated from shapes.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

struct Cost {
  double flops = 0;  ///< For products only: a multiplication and an addition for each term.
  double bytes = 0;  ///< Read and written; every element of an operand or result counts once.

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// The time that this takes on a processor of our days, by the roofline model: for comparing plans. Fixed constants,
/// because plans must not depend on measurements.
double predicted_seconds(const Cost& cost);

/// The cost of a kernel on these operands. For a scan, make_stepped computes it from the body instead.
Cost cost_of(const KernelCall& call);
/// The cost of a copy from the layout `from` to an array of `type`.
Cost cost_of_copy(const ValueType& type, const Layout& from);

}  // namespace xtape
