/// Products of groups of rows, each with its own matrix. Their time is that of the products, whose kernels they call:
/// they are compiled once, for any processor.
#pragma once

#include "kernel_form.hpp"

namespace xtape {

/// y[i] = x[i] weights[j] for each row i of group j; 0 for rows of no group. Inputs are x [m, k], weights [g, k, n] and
/// group sizes [g]. Runs throw Error for sizes below 0, and for a sum above m.
Kernel make_ragged_dot(const KernelForm& form);
/// For each group, the sum of x[i]' y[i] over its rows, [g, k, n]. Inputs are x [m, k], y [m, n] and group sizes.
Kernel make_ragged_dot_weights(const KernelForm& form);

}  // namespace xtape
