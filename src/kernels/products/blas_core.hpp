/// The choice of the BLAS library's kernels, and its memory.
#pragma once

#include <cstddef>
#include <string>

#include "base/threads/instruction_set.hpp"

namespace xtape {

/// "OpenBLAS 0.3.21 …, kernels for SkylakeX".
std::string blas_description();

/// Returns the value of OPENBLAS_CORETYPE with which OpenBLAS uses its widest kernels that need only `set`. Returns ""
/// on processors other than x86-64.
std::string blas_kernels_for(InstructionSet set);

/// Gives OpenBLAS the memory for a call on each thread that this process uses (most_threads_so_far). OpenBLAS
/// retries forever if the system refuses memory. This function throws Error instead if the memory is not available.
void reserve_blas();

/// The memory that OpenBLAS takes when it is loaded, for `threads` OpenBLAS threads.
std::size_t blas_start_bytes(int threads);

/// Restarts the program with OpenBLAS's kernels for the instruction set in XTAPE_ISA. If XTAPE_ISA is not set, restarts
/// without the variables OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE. Either variable can halve the speed of OpenBLAS, which
/// reads both when it is loaded, before main(). Does nothing if the variables are already correct, or if
/// XTAPE_KEEP_BLAS_ENV is set for measurements. `arguments` are those of main().
void restart_with_fitting_blas(char** arguments);

}  // namespace xtape
