#include <algorithm>
#include <limits>

#include "base/arrays/lengths.hpp"
#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

namespace xtape::onnx {

Integers spatial_sizes(const Var& x) {
  Integers sizes;
  for (std::size_t i = 2; i < x.rank(); ++i) sizes.push_back(x.shape()[i]);
  return sizes;
}

Spatial spatial_of(NodeCall& node, const Integers& sizes, const Integers& kernel) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // keeps products and sums from overflowing
  const std::size_t axes = sizes.size();
  const auto taken = [&](const char* name, std::size_t wanted, const Integers& otherwise) {
    Integers list = node.integers(name, otherwise);
    if (list.size() != wanted)
      node.fail("'" + std::string(name) + "' has " + std::to_string(list.size()) + " numbers, not " +
                std::to_string(wanted));
    for (const std::int64_t each : list)
      if (each < 0 || each > most)
        node.fail("'" + std::string(name) + "' has the number " + std::to_string(each) + ", not one of 0 to 2^31 - 1");
    return list;
  };
  for (const std::int64_t size : sizes)
    if (size > most) node.fail("a spatial axis has " + std::to_string(size) + " elements, more than 2^31 - 1");
  Spatial spatial{taken("kernel_shape", axes, kernel), taken("strides", axes, Integers(axes, 1)),
                  taken("dilations", axes, Integers(axes, 1)), Integers(axes, 0), Integers(axes, 0)};
  if (!kernel.empty() && spatial.kernel != kernel) node.fail("kernel_shape is not the spatial shape of the weights");
  const Integers pads = taken("pads", 2 * axes, Integers(2 * axes, 0));
  const std::string padding = node.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < axes; ++i) {
    if (spatial.stride[i] < 1 || spatial.kernel[i] < 1) node.fail("kernels and strides must be at least 1");
    if (padding == "NOTSET") {
      spatial.before[i] = pads[i];
      spatial.after[i] = pads[axes + i];
    } else if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      const std::int64_t stride = spatial.stride[i], windows = ceiling(sizes[i], stride);
      const std::int64_t total = (windows - 1) * stride + spatial.reach(i) - sizes[i];
      const std::int64_t less = std::max(total, std::int64_t{0}) / 2, rest = std::max(total, std::int64_t{0}) - less;
      spatial.before[i] = padding == "SAME_UPPER" ? less : rest;
      spatial.after[i] = padding == "SAME_UPPER" ? rest : less;
    } else if (padding != "VALID") {
      node.fail("auto_pad '" + padding + "' is not supported");
    }
  }
  return spatial;
}

Var windows_of(Var x, const Spatial& spatial, const Literal& value, const Integers& more) {
  std::vector<std::int64_t> before = {0, 0}, after = {0, 0};
  for (std::size_t i = 0; i < spatial.axes(); ++i) {
    before.push_back(spatial.before[i]);
    after.push_back(spatial.after[i] + (more.empty() ? 0 : more[i]));
  }
  x = pad(x, before, after, value);
  for (std::size_t i = 0; i < spatial.axes(); ++i)
    x = windows(x, static_cast<std::int64_t>(i) + 2, spatial.kernel[i], spatial.stride[i], spatial.dilation[i]);
  return x;
}

}  // namespace xtape::onnx
