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
  Bits bits = Bits::usual;                   ///< With Bits::fast, results may have bits of their own on a processor.
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
  /// The layouts of a view: of its output and, for the same buffer, of its input. Both functions return nothing if
  /// strides cannot express the layout.
  struct View {
    using Map = std::function<std::optional<Layout>(const OpCall&, const Layout&)>;
    Map output = {};  ///< From the layout of the input. Must return a layout if the input is contiguous.
    Map input = {};   ///< From the layout of the output, for one-to-one views. Can be empty.
    explicit operator bool() const { return static_cast<bool>(output); }
  };

  /// How players execute the body of a call.
  struct Body {
    std::function<Stepping(const OpCall&)> steps = {};  ///< Step by step along an axis.
    /// Returns the attributes of a call with this stepping. The stepping has fewer stacked outputs than the original
    /// call, because no node reads the others. If empty, the op always computes all outputs.
    std::function<Attributes(const Stepping&)> attributes = {};
    bool tiles = false;  ///< Tile by tile, because all ops of the body are elementwise.
  };

  /// The layouts that a kernel accepts. The player copies other inputs to contiguous arrays.
  struct Layouts {
    bool any_in = false;   ///< Whether inputs may have any layout.
    bool any_out = false;  ///< Whether outputs may have any layout without overlap. If false, they are contiguous.
    /// For ops whose output consists of their inputs (concat, stack): returns the layout of each input within the given
    /// layout of the output. The ops that compute the inputs can then write directly into the output. Also needs
    /// `kernel`, for use without Passes::views.
    std::function<std::vector<Layout>(const OpCall&, const Layout&)> parts = {};
  };

  /// The dtypes that a kernel accepts. The player casts inputs of bfloat16, float16 and int8 to float32 and int32, and
  /// the results back, unless the op is a view or has `parts` or `steps`.
  struct Dtypes {
    bool any = false;              ///< Whether the op only moves elements, of any dtype.
    bool casts = false;            ///< Whether the op converts the elements of its input to the dtype of its output.
    std::vector<int> widens = {};  ///< Float32 inputs that the kernel also accepts as bfloat16, float16 or int8.
    /// Whether the kernel reads the inputs above, or input 0 if the op moves or casts, also in a block format. If
    /// empty, it never does.
    std::function<bool(const OpCall&)> blocks = {};
  };

  /// The cost of a run, for profiles.
  struct RunCost {
    std::function<double(const OpCall&)> flops = {};  ///< Additions and multiplications. If empty, they do not count.
    bool picks = false;  ///< Whether it reads at most as many elements of input 0 as it writes. For Plan::Step::bytes.
    /// The index of an input. If a run writes over another input, it changes only as many elements as this input has.
    /// -1: all elements.
    int part = -1;
  };

  // The implementation of the op: at most one of these four. If there is none, the player uses `expand`.

  /// Makes the kernel of a call.
  std::function<Kernel(const KernelCall&)> kernel = {};
  /// For elementwise ops: makes a function that computes a range of elements. Element i of the outputs depends only on
  /// element i of the (broadcast) inputs. The player handles broadcasting, threads and fusion with other elementwise
  /// ops.
  std::function<TileFunction(const KernelCall&)> tile = {};
  View view = {};  ///< For ops with one input whose output has the same elements in another layout.
  Body body = {};  ///< For ops with a body.

  /// The inputs whose buffer the first output may reuse if both are dense and have the same shape and element size. The
  /// pointers are then equal. Only for kernels: tile functions may always overwrite an input.
  std::vector<int> overwrites = {};

  /// Why results can have other bits on another processor with fused multiply-adds: "it calls the C library". Empty if
  /// they have the same bits on all. With Bits::same, a player refuses an op with such a reason.
  std::string varies = {};

  // Few ops have these.
  Layouts layouts = {};
  Dtypes dtypes = {};
  RunCost cost = {};

  /// Whether the player can run the op without its `expand`.
  bool runs() const { return kernel || tile || view || body.steps || body.tiles; }
};

}  // namespace xtape
