/// The attributes that convolutions and pools of spatial axes have in common.
#pragma once

#include "node_call.hpp"

namespace xtape::onnx {

/// One number for each spatial axis.
struct Spatial {
  Integers kernel, stride, dilation, before, after;
  std::size_t axes() const { return kernel.size(); }
  bool symmetric() const { return before == after; }
  /// How far the elements of a window reach.
  std::int64_t reach(std::size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

/// Takes kernel_shape (by default `kernel`), strides, dilations, pads and auto_pad; `sizes` are those of the spatial
/// axes.
Spatial spatial_of(NodeCall& node, const Integers& sizes, const Integers& kernel = {});

/// The sizes of the axes from the third on.
Integers spatial_sizes(const Var& x);

/// x [b, c, …] with paddings of `value`, and `more` after those, cut into windows: [b, c, windows…, elements…].
Var windows_of(Var x, const Spatial& spatial, const Literal& value, const Integers& more = {});

}  // namespace xtape::onnx
