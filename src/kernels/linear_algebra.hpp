/// Factorisations of matrices by LAPACK, which is part of OpenBLAS. Compiled once, for any processor.
#pragma once

#include <string>

#include "kernel_form.hpp"

namespace xtape {

/// The kernel of cholesky, triangular_solve, lu, qr, eigh or svd. All arrays are dense. Each matrix is computed by one
/// thread, so the bits do not depend on the number of threads. A matrix with a NaN or an infinity gives NaN without a
/// call of LAPACK, whose eigensolvers may not end for it. Runs throw Error, naming the first matrix that LAPACK
/// refuses, if the attribute "check" is set; else that matrix gives NaN.
Kernel make_linear_algebra(const std::string& op, const KernelForm& form);

}  // namespace xtape
