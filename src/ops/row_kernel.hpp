/// Kernels that process rows independently of one another.
#pragma once

#include "scratch.hpp"
#include "threads.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// A kernel for `rows` rows of `length` elements. body(arguments, first, last) computes the rows [first, last). It is
/// called on several threads, for different rows.
template <class Body>
Kernel row_kernel(std::int64_t rows, std::int64_t length, int threads, const Body& body) {
  return Kernel{[=](const KernelArguments& arguments) {
    parallel_for(threads, rows, rows_a_piece(length),
                 [&](std::int64_t begin, std::int64_t finish) { body(arguments, begin, finish); });
  }};
}

}  // namespace xtape
