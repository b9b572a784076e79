/// Included first by files whose loops wait for memory: the compiler vectorises these loops, but does not split, peel or
/// unroll them, which takes much more code.
#pragma once

#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && !defined(__clang__)
#pragma GCC optimize("O2", "vect-cost-model=dynamic")
#endif
