/// How an op is played: the part of an op that only the player uses.
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

/// A call with the layouts that the player chose. An op makes its kernel or tile function from it, once per plan.
struct KernelCall : OpCall {
  KernelCall(const OpCall& call) : OpCall(call) {}  // NOLINT: converts by intent
  std::vector<Layout> in;                       ///< Per input; offsets are 0: pointers are those of the first elements.
  std::vector<Layout> out;                      ///< Per output, the same.
  /// Per input: whether it keeps its value after `prepare`. True inside a scan's body, and for packed weights.
  std::vector<bool> fixed;
  int threads = 1;          ///< The most threads that the kernel may use, the calling one included.
  Precision precision = Precision::float32;  ///< The precision to which a float32 product may round its factors.
  std::uint64_t seed = 0;   ///< The player's seed; random kernels combine it with site.key and KernelArguments::step.
};

/// How a body is played step by step along an axis. The inputs of the call are the sequences, the first states, and the
/// values that are the same for every step; its outputs are the stacked outputs and the last states.
struct Stepping {
  std::vector<std::int64_t> input_axes;   ///< Per sequence: the axis of the steps.
  std::vector<std::int64_t> output_axes;  ///< Per stacked output: the axis of the steps.
  std::int64_t states = 0;                ///< How many.
  std::int64_t length = 0;                ///< Steps.
  bool reverse = false;                   ///< From the last index to the first.
  /// The input of the body, a slice of a sequence or a state, bool of rank 0, that says whether a step takes place; -1:
  /// all do. A step that does not leaves the states as they are, and its stacked outputs are zeros.
  std::int64_t condition = -1;

  std::size_t sequences() const { return input_axes.size(); }
  std::size_t stacked() const { return output_axes.size(); }
};

/// How the player computes an op. The functions are called while planning; an Error that they throw makes planning
/// fail.
struct Lowering {
  // How the op is computed: one of these, or `tiles_body`. An op without any of them is played through its `expand`.

  /// Makes the kernel of a call.
  std::function<Kernel(const KernelCall&)> kernel = {};
  /// For elementwise ops, whose element i of the outputs depends only on element i of the (broadcast) inputs: makes a
  /// function that computes a range of elements. The player does broadcasting, threads and fusion with other such ops.
  std::function<TileFunction(const KernelCall&)> tile = {};
  /// For views (ops of one input whose output is the input's elements under another layout): from the layout of the
  /// input, the layout of the output over the same buffer; nothing if strides cannot express it. Must give one for a
  /// contiguous input.
  std::function<std::optional<Layout>(const OpCall&, const Layout&)> view = {};
  /// For ops with a body that is played step by step.
  std::function<Stepping(const OpCall&)> steps = {};

  // Optional.

  /// For a view that is one-to-one, the inverse of `view`: the layout of the input that the view turns into the given
  /// layout of the output; nothing if there is none.
  std::function<std::optional<Layout>(const OpCall&, const Layout&)> unview = {};
  /// For ops whose output consists of its inputs (concat, stack): the layout of each input within the given layout of
  /// the output, so that the ops that compute the inputs can write there. Needs `kernel` too, for Passes::views off.
  std::function<std::vector<Layout>(const OpCall&, const Layout&)> parts = {};
  /// For an op with `steps`: the attributes of a call with this stepping, which has fewer stacked outputs because no
  /// node reads the others. Empty: the op always computes all.
  std::function<Attributes(const Stepping&)> attributes = {};

  /// Inputs whose buffer the first output may take if both are dense and of one shape and element size: then their
  /// pointers are equal. Of kernels only; tile functions may always overwrite an input.
  std::vector<int> overwrites = {};
  bool strided_in = false;           ///< Inputs may have any layout; else they are contiguous, copied if necessary.
  bool strided_out = false;          ///< Outputs may have any layout without overlap; else they are contiguous.
  /// Only moves elements, of any dtype. Other kernels never see halves and int8: the player casts their inputs to
  /// float32 and int32, and the results back. Views and ops with `parts` or `steps` need not say so.
  bool any_dtype = false;
  bool casts = false;                ///< Converts the elements of its input to the dtype of its output.
  std::vector<int> widens = {};      ///< Float32 inputs that may be given as halves or int8: the kernel widens them.
  bool picks = false;                ///< Reads at most as many elements of input 0 as it writes; for Plan::Step::bytes.
  bool scales = false;               ///< The output is input 0 times input 1; Op::scaled may scale a result instead.
  bool adds = false;                 ///< The output is input 0 + input 1; an op with `accumulate` may compute the sum.
  bool tiles_body = false;           ///< All ops of the body are elementwise and run on one tile after the other.

  /// Whether the player can run the op without its `expand`.
  bool runs() const { return kernel || tile || view || steps || parts || tiles_body; }

  /// Additions and multiplications of one run, for profiles. Empty: they are not counted.
  std::function<double(const OpCall&)> flops = {};
};

}  // namespace xtape
