/// Convolution, pooling and the norms of convolutional networks, as C++ functions with PyTorch's names and argument
/// order. Arrays have PyTorch's layout: [batch, channels, spatial axes]. docs/reference/ops/convolution.md has the
/// formulas.
///
/// An argument of type PerAxis is a list with a number for each spatial axis, or a single number for all spatial axes.
/// All functions throw ShapeError, DtypeError, HandleError and Error like those of ops.hpp. After an error, nothing is
/// recorded.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// A list with a number for each spatial axis, such as {2, 1}, or a single number for all spatial axes.
struct PerAxis {
  /// Accepts numbers, not bool, so that a flag in place of a number does not compile.
  template <class T>
  using IfNumber = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>;
  PerAxis() = default;
  template <class T, class = IfNumber<T>>
  PerAxis(T number) : list(1, static_cast<std::int64_t>(number)) {}         // NOLINT: converts by intent
  PerAxis(std::vector<std::int64_t> numbers) : list(std::move(numbers)) {}  // NOLINT
  PerAxis(std::initializer_list<std::int64_t> numbers) : list(numbers) {}   // NOLINT
  std::vector<std::int64_t> list;
};

/// The number of zeros added at both ends of a spatial axis. With "same", the result is as long as x. If the number of
/// zeros is odd, the additional zero follows x. "valid" adds no zeros.
struct ConvPadding {
  template <class T, class = PerAxis::IfNumber<T>>
  ConvPadding(T number) : numbers(number) {}                                 // NOLINT: converts by intent
  ConvPadding(std::vector<std::int64_t> list) : numbers(std::move(list)) {}  // NOLINT
  ConvPadding(std::initializer_list<std::int64_t> list) : numbers(list) {}   // NOLINT
  ConvPadding(const char* word) : name(word) {}                              // NOLINT
  PerAxis numbers = 0;
  std::string name = {};
};

// Windows -------------------------------------------------------------------------------------------------------------
/// Windows of `size` elements along `axis`, like torch.Tensor.unfold: y[..., i, ..., k] = x[..., i * stride + k *
/// dilation, ...]. In the result, the index along `axis` is the number of the window. A new last axis contains the
/// elements of a window. Accepts any dtype. A view. Throws ShapeError if no window fits.
Var windows(const Argument& x, std::int64_t axis, std::int64_t size, std::int64_t stride = 1,
            std::int64_t dilation = 1);
/// The sum of overlapping windows, the adjoint of `windows`. The windows lie along `axis` of the result. This axis has
/// size `length`. The last axis of x contains the elements of a window.
Var fold(const Argument& x, std::int64_t axis, std::int64_t length, std::int64_t stride = 1, std::int64_t dilation = 1);

// Convolutions of numbers ---------------------------------------------------------------------------------------------
/// Convolves x [b, c, n] with weight [o, c / groups, k] and returns [b, o, m]. Each element of the result is a sum of
/// products over the channels of a group and the elements of a window, plus the element of bias [o]. "same" needs
/// stride 1. padding_mode is "zeros", or a mode of `pad` in indexing.hpp: "reflect", "replicate" or "circular".
Var conv1d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
           const ConvPadding& padding = 0, const PerAxis& dilation = 1, std::int64_t groups = 1,
           const std::string& padding_mode = "zeros");
/// Like conv1d, for x [b, c, h, w] and weight [o, c / groups, kh, kw].
Var conv2d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
           const ConvPadding& padding = 0, const PerAxis& dilation = 1, std::int64_t groups = 1,
           const std::string& padding_mode = "zeros");
/// The adjoint of conv1d for x [b, c, n] and weight [c, o / groups, k]. Returns [b, o, (n - 1) * stride - 2 * padding +
/// dilation * (k - 1) + 1 + output_padding]. output_padding must be less than the stride or less than the dilation.
Var conv_transpose1d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
                     const PerAxis& padding = 0, const PerAxis& output_padding = 0, std::int64_t groups = 1,
                     const PerAxis& dilation = 1);
/// Like conv_transpose1d, for x [b, c, h, w] and weight [c, o / groups, kh, kw].
Var conv_transpose2d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
                     const PerAxis& padding = 0, const PerAxis& output_padding = 0, std::int64_t groups = 1,
                     const PerAxis& dilation = 1);

// Pooling of floats ---------------------------------------------------------------------------------------------------
/// The largest element of each window along the last axis (1d) or the last two axes (2d). The first of equal elements
/// gets the gradient. The stride defaults to the size of a window. `padding` is the number of elements -inf added at
/// each end, at most half of the window. With ceil_mode, the last window may extend beyond the end. Throws ShapeError
/// if a pooled axis has no elements.
Var max_pool1d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               const PerAxis& dilation = 1, bool ceil_mode = false);
Var max_pool2d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               const PerAxis& dilation = 1, bool ceil_mode = false);
/// Like max_pool1d and max_pool2d. Also returns the int64 index of each largest element. The index counts along the
/// last axis (1d), or along the last two axes in row-major order (2d).
std::pair<Var, Var> max_pool1d_with_indices(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {},
                                            const PerAxis& padding = 0, const PerAxis& dilation = 1,
                                            bool ceil_mode = false);
std::pair<Var, Var> max_pool2d_with_indices(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {},
                                            const PerAxis& padding = 0, const PerAxis& dilation = 1,
                                            bool ceil_mode = false);
/// The mean of each window along the last axis (1d) or the last two axes (2d). `padding` adds zeros at each end. The
/// zeros count in the mean if count_include_pad is true.
Var avg_pool1d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               bool ceil_mode = false, bool count_include_pad = true);
Var avg_pool2d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               bool ceil_mode = false, bool count_include_pad = true);
/// The mean or the maximum of each of `output_size` windows, which together cover an axis of size n. Window i contains
/// the elements with floor(i * n / output_size) <= index < ceil((i + 1) * n / output_size). In 2d, output_size is one
/// number for both axes or a list of two.
Var adaptive_avg_pool1d(const Argument& x, const PerAxis& output_size);
Var adaptive_avg_pool2d(const Argument& x, const PerAxis& output_size);
Var adaptive_max_pool1d(const Argument& x, const PerAxis& output_size);
Var adaptive_max_pool2d(const Argument& x, const PerAxis& output_size);

// Norms of floats: x [b, c, ...], weight and bias [c] or empty --------------------------------------------------------
/// Divides the channels into groups. Each group of each example is normalised to mean 0 and variance 1, then scaled by
/// weight and shifted by bias (Wu and He, 2018).
Var group_norm(const Argument& x, std::int64_t groups, const Var& weight = {}, const Var& bias = {},
               double epsilon = 1e-5);
/// group_norm in which each channel is a group (Ulyanov et al., 2016).
Var instance_norm(const Argument& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5);
/// (x - mean) / sqrt(variance + epsilon) * weight + bias, for evaluation. `mean` and `variance` are [c].
Var batch_norm(const Argument& x, const Var& mean, const Var& variance, const Var& weight = {}, const Var& bias = {},
               double epsilon = 1e-5);
/// The results of batch_norm_training. `mean` [c] and the unbiased `variance` [c] of the batch are for running
/// averages, as in PyTorch.
struct BatchNorm {
  Var y, mean, variance;
};
/// batch_norm for training, with the mean and the biased variance of the batch (Ioffe and Szegedy, 2015). Throws
/// ShapeError if a channel has only one number.
BatchNorm batch_norm_training(const Argument& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5);

}  // namespace xtape
