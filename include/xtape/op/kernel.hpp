/// Kernels. The player calls them to compute the outputs of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace xtape {

/// The memory of one run of a kernel. Pointers to operands are aligned only to their element size, because an operand
/// may be a slice of another array. An output overlaps an input only if Lowering::overwrites allows it.
struct KernelArguments {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  void* scratch = nullptr;   ///< Memory of Kernel::scratch_bytes, 64-byte aligned, with unspecified contents.
  std::uint64_t step = 0;    ///< The random step, an argument of Player::play.
  void* prepared = nullptr;  ///< Memory of Kernel::prepared_bytes, 64-byte aligned, exclusive to this kernel.
};

/// Computes the outputs of a call. Everything that depends on shapes is computed when the kernel is made. Runs must not
/// allocate. The playing thread calls `prepare` and `run`, never at the same time. Equal calls of a plan share a kernel
/// unless their op is random, so a kernel must not keep state between runs.
///
/// `run` may throw Error if the op does not accept a value (such as an index out of range), but not inside
/// parallel_for. The player adds op and site to the error, and the play fails. Results must not depend on the number of
/// threads.
struct Kernel {
  std::function<void(const KernelArguments&)> run;
  std::size_t scratch_bytes = 0;
  /// If inputs are fixed (KernelCall::fixed), prepares data from them in KernelArguments::prepared, such as a packed
  /// weight. Each play of a scan calls it once, before the runs that read the data. Can be empty.
  std::function<void(const KernelArguments&)> prepare = {};
  std::size_t prepared_bytes = 0;
  /// A key of the result of `prepare`. Kernels with equal keys prepare the same data from the same inputs.
  std::string prepared_form = {};
};

/// A range of the elements of an elementwise op: `count` elements from flat index `first` on. Pointers refer to element
/// `first`. All operands are dense and already broadcast to the shape of the output.
struct Tile {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  std::int64_t first = 0;  ///< The flat index in the output. A multiple of 16 if a random op is involved.
  std::int64_t count = 0;
  std::uint64_t step = 0;  ///< The random step.
};
/// Computes a tile. Several threads call it at the same time for different ranges, so it must not throw or change
/// shared state. An output may have the address of an input of the same element size, so the function must read element
/// i of the inputs before it writes element i of the outputs.
using TileFunction = std::function<void(const Tile&)>;

}  // namespace xtape
