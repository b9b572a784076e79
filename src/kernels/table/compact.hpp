/// Files with memory-bound loops include this header first. The compiler then vectorises these loops, but does not
/// split, peel or unroll them, because that would generate much more code.
#pragma once

#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && !defined(__clang__)
#pragma GCC optimize("O2", "vect-cost-model=dynamic")
#endif
