/// Resampling of images and signals, with PyTorch's names, argument order and conventions.
/// docs/reference/ops/resampling.md has the formulas. Functions throw ShapeError, DtypeError, HandleError and Error
/// like those of ops.hpp. After an error, nothing is recorded.
#pragma once

#include <optional>
#include <string>

#include "xtape/ops/convolution.hpp"

namespace xtape {

/// Resamples the one to three spatial axes of float x [b, c, ...] to `size`, or to floor(scale_factor * size of the
/// axis). Give exactly one of `size` and `scale_factor`. The mode is "nearest", "nearest-exact", "linear" (or
/// "bilinear", "trilinear"), or "bicubic" for two axes. With align_corners, the centres of the first elements of x and
/// of the result coincide, and the centres of the last elements coincide. Otherwise, the outer edges of these elements
/// coincide.
Var interpolate(const Argument& x, const PerAxis& size, std::optional<double> scale_factor = std::nullopt,
                const std::string& mode = "nearest", bool align_corners = false);

/// Samples float x [b, c, h, w] at the points of `grid` [b, i, j, 2] and returns [b, c, i, j]. The coordinates of a
/// point (x, y) are -1 at one end of the image and 1 at the other end. The mode is "bilinear" or "nearest".
/// padding_mode "zeros", "border" or "reflection" determines the values outside the image. With align_corners, -1 and 1
/// are the centres of the outermost elements, otherwise their outer edges.
Var grid_sample(const Argument& x, const Var& grid, const std::string& mode = "bilinear",
                const std::string& padding_mode = "zeros", bool align_corners = false);

}  // namespace xtape
