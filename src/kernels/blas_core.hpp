/// The kernels of the BLAS library.
#pragma once

#include <string>

#include "instruction_set.hpp"

namespace xtape {

/// "OpenBLAS 0.3.21 …, kernels for SkylakeX".
std::string blas_description();

/// The name that OPENBLAS_CORETYPE must have when OpenBLAS is loaded so that it uses kernels for `set` and no wider
/// ones;
/// "" on processors other than x86-64.
std::string blas_kernels_for(InstructionSet set);

/// Restarts the program with OpenBLAS's kernels for the instruction set that XTAPE_ISA names, or, if it is not set,
/// without the variables OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE. Either can halve the speed of OpenBLAS, which reads
/// them when it is loaded, before main(). Does nothing if the variables are right, or if XTAPE_KEEP_BLAS_ENV is set,
/// for measurements. `arguments` are those of main().
void restart_with_fitting_blas(char** arguments);

}  // namespace xtape
