/// Triangles of matrices.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// Copies the elements of dense matrices [matrices, rows, columns] on and below (`lower`) or on and above the diagonal
/// with index `diagonal`, and writes zeros elsewhere. `diagonal` is in [-rows, columns]. `out` may be `x`.
void copy_triangle(Dtype dtype, std::int64_t matrices, std::int64_t rows, std::int64_t columns, std::int64_t diagonal,
                   bool lower, const void* x, void* out, int threads);

}  // namespace xtape
