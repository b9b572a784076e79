/// The kernels of the BLAS library.
#pragma once

#include <cstddef>
#include <string>

#include "instruction_set.hpp"

namespace xtape {

/// "OpenBLAS 0.3.21 …, kernels for SkylakeX".
std::string blas_description();

/// The name that OPENBLAS_CORETYPE must have when OpenBLAS is loaded so that it uses kernels for `set` and no wider
/// ones;
/// "" on processors other than x86-64.
std::string blas_kernels_for(InstructionSet set);

/// Gives OpenBLAS the memory for a product on each thread that this process uses (most_threads_so_far). OpenBLAS tries
/// for ever to get memory that the system refuses; this function throws Error instead, unless the memory is there.
void reserve_blas();

/// The memory that OpenBLAS takes when it is loaded, for `threads` threads of its own.
std::size_t blas_start_bytes(int threads);

/// Restarts the program with OpenBLAS's kernels for the instruction set that XTAPE_ISA names, or, if it is not set,
/// without the variables OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE. Either can halve the speed of OpenBLAS, which reads
/// them when it is loaded, before main(). Does nothing if the variables are right, or if XTAPE_KEEP_BLAS_ENV is set,
/// for measurements. `arguments` are those of main().
void restart_with_fitting_blas(char** arguments);

}  // namespace xtape
