/// The lowering of an op, which only the player uses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xtape/op/call.hpp"
#include "xtape/op/kernel.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// A call with the layouts chosen by the player. An op makes its kernel or tile function from a KernelCall, once per
/// plan.
struct KernelCall : OpCall {
  KernelCall(const OpCall& call) : OpCall(call) {}  // NOLINT: converts by intent
  std::vector<Layout> in;   ///< Per input. Offsets are 0, because pointers refer to the first elements.
  std::vector<Layout> out;  ///< Per output. Offsets are 0.
  /// Per input, whether it keeps its value after `prepare`. True for a body's inputs that are the same at every step of
  /// a scan, and for parameters with PlayerOptions::packed.
  std::vector<bool> fixed;
  int threads = 1;  ///< The most threads that the kernel may use, including the calling thread.
  Precision precision = Precision::float32;  ///< The precision to which a float32 product may round its operands.
  std::uint64_t seed = 0;  ///< The player's seed. Random kernels combine it with site.key and KernelArguments::step.
};

/// Describes how a body runs step by step along an axis. The inputs of the call are the sequences, the initial states,
/// and the values that are the same for every step. Its outputs are the stacked outputs and the final states.
struct Stepping {
  std::vector<std::int64_t> input_axes;   ///< The axis of the steps in each sequence.
  std::vector<std::int64_t> output_axes;  ///< The axis of the steps in each stacked output.
  std::int64_t states = 0;                ///< The number of states.
  std::int64_t length = 0;                ///< The number of steps.
  bool reverse = false;                   ///< Whether to run from the last index to the first.
  /// The index of the body's input that says whether a step takes place. The input is a slice of a sequence or a state,
  /// bool of rank 0. -1: all steps take place. If a step does not take place, the states stay unchanged and its stacked
  /// outputs are zeros.
  std::int64_t condition = -1;

  std::size_t sequences() const { return input_axes.size(); }
  std::size_t stacked() const { return output_axes.size(); }
};

/// Describes how the player computes an op. The player calls the functions of a Lowering during planning. If one throws
/// Error, planning fails.
struct Lowering {
  // The implementation of the op: exactly one of the following, or `tiles_body`. If there is none, the player uses
  // `expand`.

  /// Makes the kernel of a call.
  std::function<Kernel(const KernelCall&)> kernel = {};
  /// For elementwise ops: makes a function that computes a range of elements. Element i of the outputs depends only on
  /// element i of the (broadcast) inputs. The player handles broadcasting, threads and fusion with other elementwise
  /// ops.
  std::function<TileFunction(const KernelCall&)> tile = {};
  /// For views, which have a single input and whose output has the same elements in another layout. Maps the layout of
  /// the input to the layout of the output over the same buffer. Returns nothing if strides cannot express the view.
  /// Must return a layout for a contiguous input.
  std::function<std::optional<Layout>(const OpCall&, const Layout&)> view = {};
  /// For ops with a body that runs step by step.
  std::function<Stepping(const OpCall&)> steps = {};

  // The following functions are optional.

  /// For one-to-one views: the inverse of `view`. Maps a layout of the output to the layout of the input. Returns
  /// nothing if there is no such layout.
  std::function<std::optional<Layout>(const OpCall&, const Layout&)> unview = {};
  /// For ops whose output consists of their inputs (concat, stack): returns the layout of each input within the given
  /// layout of the output. The ops that compute the inputs can then write directly into the output. Also needs
  /// `kernel`, for use without Passes::views.
  std::function<std::vector<Layout>(const OpCall&, const Layout&)> parts = {};
  /// For an op with `steps`: returns the attributes of a call with this stepping. The stepping has fewer stacked
  /// outputs than the original call, because no node reads the others. If empty, the op always computes all outputs.
  std::function<Attributes(const Stepping&)> attributes = {};

  /// The inputs whose buffer the first output may reuse if both are dense and have the same shape and element size. The
  /// pointers are then equal. Only for kernels: tile functions may always overwrite an input.
  std::vector<int> overwrites = {};
  /// Whether inputs may have any layout. If false, the player makes them contiguous, by a copy if necessary.
  bool strided_in = false;
  bool strided_out = false;  ///< Whether outputs may have any layout without overlap. If false, they are contiguous.
  /// Whether the op only moves elements, of any dtype. Other kernels never receive bfloat16, float16 or int8: the
  /// player casts their inputs to float32 and int32, and the results back. Not needed for views and ops with `parts` or
  /// `steps`.
  bool any_dtype = false;
  bool casts = false;            ///< Whether the op converts the elements of its input to the dtype of its output.
  std::vector<int> widens = {};  ///< Float32 inputs that the kernel also accepts as bfloat16, float16 or int8.
  bool picks = false;   ///< Whether it reads at most as many elements of input 0 as it writes. For Plan::Step::bytes.
  bool scales = false;  ///< Whether the output is input 0 times input 1, so that Op::scaled may scale a result instead.
  bool adds = false;  ///< Whether the output is input 0 + input 1, so that an op with `accumulate` may compute the sum.
  bool tiles_body = false;  ///< Whether all ops of the body are elementwise and run tile by tile.

  /// Whether the player can run the op without its `expand`.
  bool runs() const { return kernel || tile || view || steps || parts || tiles_body; }

  /// The additions and multiplications of one run, for profiles. If empty, they do not count.
  std::function<double(const OpCall&)> flops = {};
};

}  // namespace xtape
