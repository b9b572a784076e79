/// Resampling of images and signals, with PyTorch's names, argument order and conventions. docs/ops.md has the
/// formulas. Functions throw ShapeError, DtypeError, HandleError and Error as those of ops.hpp do; then nothing is
/// recorded.
#pragma once

#include <optional>
#include <string>

#include "xtape/ops/convolution.hpp"

namespace xtape {

/// x [b, c, ...], of floats, with its one to three spatial axes resampled to `size`, or to floor(scale_factor * size of
/// the axis): give one of the two. The mode is "nearest", "nearest-exact", "linear" (or "bilinear", "trilinear"), or
/// "bicubic", for two axes. With align_corners, the centres of the first and of the last elements coincide; else their
/// outer ends do.
Var interpolate(const Argument& x, const PerAxis& size, std::optional<double> scale_factor = std::nullopt,
                const std::string& mode = "nearest", bool align_corners = false);

/// x [b, c, h, w] at the points of `grid` [b, i, j, 2], pairs (x, y) in [-1, 1] from one end of the image to the other:
/// [b, c, i, j], of floats. The mode is "bilinear" or "nearest"; beyond the image are "zeros", its "border", or its
/// "reflection". With align_corners, -1 and 1 are the centres of the outermost elements, else their outer ends.
Var grid_sample(const Argument& x, const Var& grid, const std::string& mode = "bilinear",
                const std::string& padding_mode = "zeros", bool align_corners = false);

}  // namespace xtape
