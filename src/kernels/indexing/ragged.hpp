/// Products of groups of rows, each with its own matrix. Nearly all their time goes into the product kernels that they
/// call, so they are compiled once for all processors.
#pragma once

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// y[i] = x[i] weights[j] for each row i of group j. Rows in no group are 0. Inputs are x [m, k], weights [g, k, n] and
/// group sizes [g]. Runs throw Error if a size is negative or the sum exceeds m.
Kernel make_ragged_dot(const KernelForm& form);
/// For each group, the sum of x[i]' y[i] over its rows, [g, k, n]. Inputs are x [m, k], y [m, n] and group sizes.
Kernel make_ragged_dot_weights(const KernelForm& form);

}  // namespace xtape
