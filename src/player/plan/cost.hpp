/// The cost of a plan's step, estimated from shapes.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

struct Cost {
  double flops = 0;  ///< Only for products: two operations per term, a multiplication and an addition.
  double bytes = 0;  ///< Bytes read and written. Every element of an operand or result counts once.

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Predicts the time of a step on a current processor by the roofline model, in order to compare plans. The constants
/// are fixed, because plans must not depend on measurements.
double predicted_seconds(const Cost& cost);

/// Returns the cost of a kernel on these operands. For a scan, make_stepped computes the cost from the body instead.
Cost cost_of(const KernelCall& call);
/// Returns the cost of a copy from the layout `from` to an array of `type`.
Cost cost_of_copy(const ValueType& type, const Layout& from);

}  // namespace xtape
