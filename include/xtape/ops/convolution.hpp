/// Convolution, pooling and the norms of convolutional networks, as C++ functions with PyTorch's names and argument
/// order. Arrays are laid out as PyTorch's: [batch, channels, spatial axes]. docs/ops.md has the formulas.
///
/// Numbers that belong to spatial axes are lists with one number for each axis, or with one for all. All functions
/// throw ShapeError, DtypeError, HandleError and Error as those of ops.hpp do; then nothing is recorded.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// Numbers of spatial axes: one for each, as in {2, 1}, or one for all.
struct PerAxis {
  /// Numbers, not bool: a flag in the place of a number does not compile.
  template <class T>
  using IfNumber = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>;
  PerAxis() = default;
  template <class T, class = IfNumber<T>>
  PerAxis(T number) : list(1, static_cast<std::int64_t>(number)) {}         // NOLINT: converts by intent
  PerAxis(std::vector<std::int64_t> numbers) : list(std::move(numbers)) {}  // NOLINT
  PerAxis(std::initializer_list<std::int64_t> numbers) : list(numbers) {}   // NOLINT
  std::vector<std::int64_t> list;
};

/// How many zeros are added at the two ends of a spatial axis: numbers; or "same", so that the result is as long as x,
/// with the odd zero after x; or "valid", none.
struct ConvPadding {
  template <class T, class = PerAxis::IfNumber<T>>
  ConvPadding(T number) : numbers(number) {}                                // NOLINT: converts by intent
  ConvPadding(std::vector<std::int64_t> list) : numbers(std::move(list)) {} // NOLINT
  ConvPadding(std::initializer_list<std::int64_t> list) : numbers(list) {}  // NOLINT
  ConvPadding(const char* word) : name(word) {}                             // NOLINT
  PerAxis numbers = 0;
  std::string name = {};
};

// Windows -------------------------------------------------------------------------------------------------------------
/// Windows of `size` elements along `axis`, as torch.Tensor.unfold: y[..., i, ..., k] = x[..., i * stride + k *
/// dilation, ...]. The axis becomes that of the windows; the elements within them are a new last axis. Of any dtype. A
/// view. Throws ShapeError if no window fits.
Var windows(const Argument& x, std::int64_t axis, std::int64_t size, std::int64_t stride = 1,
            std::int64_t dilation = 1);
/// The sum of overlapping windows, the adjoint of `windows`. The windows lie along `axis` of the result, which has the
/// size `length` there; the last axis of x is that within windows.
Var fold(const Argument& x, std::int64_t axis, std::int64_t length, std::int64_t stride = 1,
         std::int64_t dilation = 1);

// Convolutions, of numbers --------------------------------------------------------------------------------------------
/// x [b, c, n] by weight [o, c / groups, k] gives [b, o, m]: the sum of products over the channels of a group and the
/// elements of a window, plus bias [o]. "same" needs stride 1. padding_mode is "zeros", or what `pad` of indexing.hpp
/// adds: "reflect", "replicate" or "circular".
Var conv1d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
           const ConvPadding& padding = 0, const PerAxis& dilation = 1, std::int64_t groups = 1,
           const std::string& padding_mode = "zeros");
/// The same for x [b, c, h, w] and weight [o, c / groups, kh, kw].
Var conv2d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
           const ConvPadding& padding = 0, const PerAxis& dilation = 1, std::int64_t groups = 1,
           const std::string& padding_mode = "zeros");
/// The adjoint of conv1d: x [b, c, n] by weight [c, o / groups, k] gives [b, o, (n - 1) * stride - 2 * padding +
/// dilation * (k - 1) + 1 + output_padding]. output_padding must be below the stride or the dilation.
Var conv_transpose1d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
                     const PerAxis& padding = 0, const PerAxis& output_padding = 0, std::int64_t groups = 1,
                     const PerAxis& dilation = 1);
Var conv_transpose2d(const Argument& x, const Var& weight, const Var& bias = {}, const PerAxis& stride = 1,
                     const PerAxis& padding = 0, const PerAxis& output_padding = 0, std::int64_t groups = 1,
                     const PerAxis& dilation = 1);

// Pooling, of floats --------------------------------------------------------------------------------------------------
/// The largest element of each window along the last axis; the first one gets the gradient. The stride is by default
/// the size of a window. `padding`, at most half of it, adds -inf. With ceil_mode the last window may reach beyond the
/// end. Throws ShapeError if a pooled axis has no elements.
Var max_pool1d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               const PerAxis& dilation = 1, bool ceil_mode = false);
Var max_pool2d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               const PerAxis& dilation = 1, bool ceil_mode = false);
/// Also the int64 index of each element within the last axis or, row by row, the last two.
std::pair<Var, Var> max_pool1d_with_indices(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {},
                                            const PerAxis& padding = 0, const PerAxis& dilation = 1,
                                            bool ceil_mode = false);
std::pair<Var, Var> max_pool2d_with_indices(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {},
                                            const PerAxis& padding = 0, const PerAxis& dilation = 1,
                                            bool ceil_mode = false);
/// The mean of each window along the last axis. `padding` adds zeros, which count if count_include_pad is true.
Var avg_pool1d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               bool ceil_mode = false, bool count_include_pad = true);
Var avg_pool2d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride = {}, const PerAxis& padding = 0,
               bool ceil_mode = false, bool count_include_pad = true);
/// The mean, or the largest, of `output_size` windows that cover an axis: window i has the elements from floor(i * n /
/// output_size) to ceil((i + 1) * n / output_size). In 2d, output_size is one number for both axes or has two.
Var adaptive_avg_pool1d(const Argument& x, const PerAxis& output_size);
Var adaptive_avg_pool2d(const Argument& x, const PerAxis& output_size);
Var adaptive_max_pool1d(const Argument& x, const PerAxis& output_size);
Var adaptive_max_pool2d(const Argument& x, const PerAxis& output_size);

// Norms, of floats: x [b, c, ...], weight and bias [c] or empty -------------------------------------------------------
/// The channels are cut into groups; each group of each example gets mean 0 and variance 1, times weight plus bias (Wu
/// and He, 2018).
Var group_norm(const Argument& x, std::int64_t groups, const Var& weight = {}, const Var& bias = {},
               double epsilon = 1e-5);
/// Each channel of each example is a group of its own (Ulyanov et al., 2016).
Var instance_norm(const Argument& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5);
/// (x - mean) / sqrt(variance + epsilon) * weight + bias, with given mean and variance [c] of each channel: evaluation.
Var batch_norm(const Argument& x, const Var& mean, const Var& variance, const Var& weight = {}, const Var& bias = {},
               double epsilon = 1e-5);
/// The same with the mean and the biased variance of the batch (Ioffe and Szegedy, 2015): training. Also returns what
/// running averages are made from, as PyTorch does: the mean [c] and the unbiased variance [c]. Throws ShapeError if a
/// channel has one number only.
struct BatchNorm {
  Var y, mean, variance;
};
BatchNorm batch_norm_training(const Argument& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5);

}  // namespace xtape
