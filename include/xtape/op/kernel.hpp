/// Kernels: what the player calls to compute the outputs of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace xtape {

/// The memory of one run of a kernel. Pointers to operands are aligned to their element size only, since an operand may
/// be a slice of another array. An output overlaps an input only as Lowering::overwrites allows.
struct KernelArguments {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  void* scratch = nullptr;   ///< Kernel::scratch_bytes, 64-byte aligned; unspecified contents.
  std::uint64_t step = 0;    ///< The random step, an argument of Player::play.
  void* prepared = nullptr;  ///< Kernel::prepared_bytes, 64-byte aligned, for this kernel alone.
};

/// Computes the outputs of a call. What depends on shapes is worked out when the kernel is made; runs must not
/// allocate. `prepare` and `run` are called by the thread that plays, never at the same time. Equal calls of a plan
/// share a kernel unless their op is random, so a kernel keeps nothing from run to run.
///
/// `run` may throw Error for values that the op does not take (an index out of range), but not inside parallel_for.
/// The player adds op and site, and the play fails. Results must not depend on the number of threads.
struct Kernel {
  std::function<void(const KernelArguments&)> run;
  std::size_t scratch_bytes = 0;
  /// If inputs are fixed (KernelCall::fixed): computes something from them into KernelArguments::prepared (a packed
  /// weight), before the many runs that read it, at each play of a scan. May be empty.
  std::function<void(const KernelArguments&)> prepare = {};
  std::size_t prepared_bytes = 0;
  /// What `prepare` makes: kernels of equal forms make the same from the same inputs.
  std::string prepared_form = {};
};

/// A range of an elementwise op's elements: `count` elements from flat index `first` on. Pointers are those of element
/// `first`. All operands are dense and already broadcast to the shape of the output.
struct Tile {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  std::int64_t first = 0;  ///< The flat index in the output; a multiple of 16 if a random op is involved.
  std::int64_t count = 0;
  std::uint64_t step = 0;  ///< The random step.
};
/// Several threads call it at the same time, for different ranges: it must not throw or change shared state. An output
/// may have the address of an input of the same element size: element i must be read before it is written.
using TileFunction = std::function<void(const Tile&)>;

}  // namespace xtape
