/// The common attributes of convolutions and pools over spatial axes.
#pragma once

#include "onnx/node_call.hpp"

namespace xtape::onnx {

/// Each list has one number for each spatial axis.
struct Spatial {
  Integers kernel, stride, dilation, before, after;
  std::size_t axes() const { return kernel.size(); }
  bool symmetric() const { return before == after; }
  /// Returns the extent of a window in elements of the input.
  std::int64_t reach(std::size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

/// Reads kernel_shape (by default `kernel`), strides, dilations, pads and auto_pad. `sizes` are the sizes of the
/// spatial axes.
Spatial spatial_of(NodeCall& node, const Integers& sizes, const Integers& kernel = {});

/// Returns the sizes of the axes from the third axis on.
Integers spatial_sizes(const Var& x);

/// Pads x [b, c, …] with `value`, adds `more` at the end, and cuts the result into windows: [b, c, windows…,
/// elements…].
Var windows_of(Var x, const Spatial& spatial, const Literal& value, const Integers& more = {});

}  // namespace xtape::onnx
