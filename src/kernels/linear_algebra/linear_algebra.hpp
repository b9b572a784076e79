/// Factorisations of matrices by LAPACK, which is part of OpenBLAS. Compiled once for all processors.
#pragma once

#include <string>

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// Returns the kernel of cholesky, triangular_solve, lu, qr, eigh, svd, det_grad or det_grad_grad. All arrays are
/// dense. One thread computes each matrix, so the bits do not depend on the number of threads. A matrix with NaN or
/// infinity gives NaN without a call of LAPACK, whose eigensolvers might not terminate. If LAPACK rejects a matrix and
/// the attribute "check" is set, runs throw Error with the first such matrix. If "check" is not set, such a matrix
/// gives NaN.
Kernel make_linear_algebra(const std::string& op, const KernelForm& form);

}  // namespace xtape
