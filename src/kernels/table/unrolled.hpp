/// Files whose sums are loops over many lanes include this header first. The compiler then unrolls these loops
/// completely, so that the lanes stay in registers. Other kernels compile with -O2 (src/meson.build).
#pragma once

#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
