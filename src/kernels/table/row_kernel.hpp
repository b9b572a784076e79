/// Kernels that can compute some rows of their outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/op/kernel.hpp"

namespace xtape {

/// A Kernel::run whose outputs have rows, the indices of their first axis. A row depends on the same row of some inputs
/// and on the whole of the others. A scan looks for this type (`row_kernel_of`), and computes some rows with several
/// kernels before it computes the next rows. Rows have the same bits in every division.
struct RowKernel {
  /// The rows of an operand in memory.
  struct Operand {
    std::int64_t stride =
        0;                   ///< The distance of two rows in bytes. 0: each row of the outputs reads the whole operand.
    std::int64_t bytes = 0;  ///< The distance from the beginning of a row to its end.
  };
  /// Computes the rows [begin, end). Must not throw. Calls at the same time have different workers, from 0 to the
  /// number of threads - 1.
  using Compute =
      std::function<void(const KernelArguments& arguments, std::int64_t begin, std::int64_t end, std::int64_t worker)>;

  std::function<void(const KernelArguments&)> all;  ///< Computes all rows, on several threads.
  Compute compute = {};
  std::int64_t rows = 0;
  double nanoseconds = 0;              ///< The time of a row on one thread, approximately.
  std::vector<Operand> operands = {};  ///< Inputs, then outputs.

  void operator()(const KernelArguments& arguments) const { all(arguments); }
  /// Adds an operand with this layout. If `has_rows`, its first axis is that of the rows. Returns false if a stride is
  /// negative.
  bool add(const Layout& layout, std::size_t element_bytes, bool has_rows = true);
};

/// Copies some rows of an array.
struct RowCopy {
  std::function<void(const void* from, void* to)> row = {};  ///< Copies a row.
  std::int64_t from_stride = 0, to_stride = 0;               ///< The distances of rows in bytes.

  void operator()(const void* from, void* to, std::int64_t begin, std::int64_t end) const;
};
/// Returns the layout of row 0.
Layout row_of(Layout layout);

/// Returns the kernel with rows, or null if it has none.
const RowKernel* row_kernel_of(const Kernel& kernel);

}  // namespace xtape
