/// Kernels that go row after row.
#pragma once

#include "lanes.hpp"
#include "threads.hpp"
#include "xtape/op.hpp"

namespace xtape {

/// Of `rows` rows of `length` elements, which need nothing of one another: body(arguments, first, last) computes some.
template <class Body>
Kernel row_kernel(std::int64_t rows, std::int64_t length, int threads, const Body& body) {
  return Kernel{[=](const KernelArguments& arguments) {
    parallel_for(threads, rows, rows_a_piece(length),
                 [&](std::int64_t begin, std::int64_t finish) { body(arguments, begin, finish); });
  }};
}

}  // namespace xtape
