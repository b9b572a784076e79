/// How an op runs: the half of its row that only the player looks at.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 2
#error "this layer of xtape may not see the tape layer"
#endif

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "xtape/call.hpp"

namespace xtape {

/// A call with the layouts that the player chose, from which a kernel is made.
struct KernelCall : Call {
  KernelCall(const Call& call) : Call(call) {}  // NOLINT: converts by intent
  std::vector<Layout> in;                       ///< Offsets are 0: the pointers of KernelArguments already stand there.
  std::vector<Layout> out;
  std::vector<bool> fixed;  ///< Per input: whether it stays as it is from `prepare` on. Empty: none is known to.
  int threads = 1;
  std::uint64_t seed = 0;  ///< The player's seed; random kernels combine it with site.key and KernelArguments::step.
};

/// The memory of one run of a kernel.
struct KernelArguments {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  void* scratch = nullptr;   ///< 64-byte aligned; Kernel::scratch_bytes of it.
  std::uint64_t step = 0;    ///< Random step: an input of the play.
  void* prepared = nullptr;  ///< 64-byte aligned; Kernel::prepared_bytes of it, which nobody else writes to.
};

/// Computes the outputs. Everything that depends on shapes is worked out when it is made; a run allocates nothing.
struct Kernel {
  std::function<void(const KernelArguments&)> run;
  std::size_t scratch_bytes = 0;
  /// Where inputs are fixed (KernelCall::fixed), it may make something of them ready: in KernelArguments::prepared, of
  /// `prepared_bytes`, before the first of many runs, which find it there. Empty where there is nothing to make ready.
  std::function<void(const KernelArguments&)> prepare = {};
  std::size_t prepared_bytes = 0;
};

/// A stretch of an elementwise op's output: `count` elements from flat index `first`. All operands are dense here.
struct Tile {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  std::int64_t first = 0;  ///< A multiple of 16 where anything is drawn at random.
  std::int64_t count = 0;
  std::uint64_t step = 0;
};
using TileFunction = std::function<void(const Tile&)>;

/// A body that is played step by step along an axis of its sequences. The inputs are the sequences, the first states,
/// and what every step sees alike; the outputs are the stacked outputs and the last states.
struct Stepping {
  std::vector<std::int64_t> input_axes;   ///< Per sequence: the axis of the steps.
  std::vector<std::int64_t> output_axes;  ///< Per stacked output: the same.
  std::int64_t states = 0;
  std::int64_t length = 0;
  bool reverse = false;

  std::size_t sequences() const { return input_axes.size(); }
  std::size_t stacked() const { return output_axes.size(); }
};

struct Lowering {
  // How the op is computed: one of these (or, for want of all, by its row's `expand`).
  std::function<Kernel(const KernelCall&)> kernel = {};
  /// For elementwise ops: element i of the outputs depends on element i of the (broadcast) inputs.
  std::function<TileFunction(const KernelCall&)> tile = {};
  /// For views, which are the input's elements under another layout: the output's layout over the input's buffer, or
  /// nothing where strides cannot say it. Must succeed on a contiguous input.
  std::function<std::optional<Layout>(const Call&, const Layout&)> view = {};
  /// For an op with a body that is played step by step.
  std::function<Stepping(const Call&)> steps = {};

  /// For a view that is one to one: the input's layout which the view turns into the given output layout, or nothing.
  std::function<std::optional<Layout>(const Call&, const Layout&)> unview = {};
  /// For ops whose output is made of its inputs side by side (concat, stack): where each input lies in the output's
  /// layout. The inputs' producers may then write there themselves.
  std::function<std::vector<Layout>(const Call&, const Layout&)> parts = {};
  /// For an op with a body: attributes of the call that gives fewer stacked outputs. Empty: it always gives all.
  std::function<Attributes(const Stepping&)> attributes = {};

  std::vector<int> overwrites = {};  ///< Inputs whose buffer the first output may take, where types and layouts agree.
  bool strided_in = false;           ///< Inputs may have any layout; else the player makes them contiguous.
  bool strided_out = false;          ///< Outputs may have any layout without overlap; else they are contiguous.
  bool picks = false;                ///< Reads no more elements of its first input than it writes.
  bool adds = false;                 ///< The output is the sum of the two inputs: ops with `accumulate` may make it.
  bool tiles_body = false;           ///< The body is of elementwise ops, all of which run on one tile after the other.

  /// Whether it says how to run the op at all.
  bool runs() const { return kernel || tile || view || steps || parts || tiles_body; }

  /// Additions and multiplications of one run, for profiles; where it is empty they are not counted.
  std::function<double(const Call&)> flops = {};
};

}  // namespace xtape
