// Linear maps of the last axis, convolutions and norms.
#include "nn/layers.hpp"

#include <algorithm>

namespace xtape::nn {

Initialiser with_fans(Initialiser initialiser, double fan_in, double fan_out) {
  const Initialiser::Settings* known = initialiser_settings(initialiser.name);
  if (known == nullptr) return initialiser;
  const auto has = [](const Initialiser::Settings& settings, const char* name) {
    return std::ranges::any_of(settings, [&](const auto& each) { return each.first == name; });
  };
  const auto set = [&](const char* name, double fan) {
    if (has(*known, name) && !has(initialiser.settings, name)) initialiser.settings.emplace_back(name, fan);
  };
  set("fan_in", fan_in);
  set("fan_out", fan_out);
  return initialiser;
}

namespace {
Var affine(const Parameters& p, const Argument& x, std::int64_t out, bool with_bias, const Initialiser& initialiser,
           bool out_first) {
  return as_layer(p, x.caller(), [&] {
    const std::int64_t in = x.size(-1);
    const Initialiser of_map = with_fans(initialiser, static_cast<double>(in), static_cast<double>(out));
    const Var weight = p("weight", out_first ? Shape{out, in} : Shape{in, out}, of_map);
    const Var y = einsum(out_first ? "... in, out in -> ... out" : "... in, in out -> ... out", x, weight);
    return plus(y, bias_of(p, out, with_bias));
  });
}
}  // namespace

Var linear(const Parameters& p, const Argument& x, std::int64_t out, bool with_bias, const Initialiser& initialiser) {
  return affine(p, x, out, with_bias, initialiser, true);
}
Var dense(const Parameters& p, const Argument& x, std::int64_t out, bool with_bias, const Initialiser& initialiser) {
  return affine(p, x, out, with_bias, initialiser, false);
}

Var embedding(const Parameters& p, const Argument& indices, std::int64_t rows, std::int64_t width,
              const Initialiser& initialiser) {
  return as_layer(p, indices.caller(), [&] { return take(p("weight", {rows, width}, initialiser), indices, 0); });
}

Var feed_forward(const Parameters& p, const Argument& x, std::int64_t d_ff, double dropout_rate,
                 const std::function<Var(const Var&)>& activation, bool with_bias) {
  if (!activation) throw Error("feed_forward: the activation is empty");
  return as_layer(p, x.caller(), [&] {
    const Var inner = activation(linear(p / "linear1", x, d_ff, with_bias));
    return linear(p / "linear2", {dropout(inner, dropout_rate), x.caller()}, x.size(-1), with_bias);
  });
}

namespace {
/// Returns the sizes of a kernel with `axes` axes.
Shape kernel_sizes(const PerAxis& size, std::size_t axes) {
  if (size.list.size() != 1 && size.list.size() != axes)
    throw ShapeError("the size of a kernel is one number or " + std::to_string(axes) + ", got " +
                     std::to_string(size.list.size()));
  Shape sizes;
  for (std::size_t i = 0; i < axes; ++i) sizes.push_back(size.list[size.list.size() == 1 ? 0 : i]);
  return sizes;
}

/// Returns the weight [first, second, size…]. `in` and `out` give the fans: an output element depends on `in` channels,
/// and an input element contributes to `out` channels.
Var kernel(const Parameters& p, std::int64_t first, std::int64_t second, const Shape& sizes, std::int64_t in,
           std::int64_t out, const Initialiser& initialiser) {
  Shape shape{first, second};
  double window = 1;
  for (const std::int64_t size : sizes) {
    shape.push_back(size);
    window *= static_cast<double>(size);
  }
  return p("weight", shape,
           with_fans(initialiser, static_cast<double>(in) * window, static_cast<double>(out) * window));
}

void check_channels(const Argument& x, std::size_t axes, std::int64_t out, std::int64_t groups) {
  if (x.rank() != axes + 2)
    throw ShapeError("a convolution along " + std::to_string(axes) + " axes takes [b, channels, " +
                     (axes == 1 ? "n" : "h, w") + "], got " + to_string(x.type()));
  if (groups < 1 || x.size(1) % groups != 0 || out % groups != 0)
    throw ShapeError("groups must divide the channels, " + std::to_string(x.size(1)) + " and " + std::to_string(out) +
                     ", got " + std::to_string(groups));
}

template <class Convolve>
Var convolution(const Parameters& p, const Argument& x, std::int64_t out, const PerAxis& size, std::size_t axes,
                std::int64_t groups, bool with_bias, const Initialiser& initialiser, const Convolve& convolve) {
  return as_layer(p, x.caller(), [&] {
    check_channels(x, axes, out, groups);
    const std::int64_t in = x.size(1) / groups;
    const Var weight = kernel(p, out, in, kernel_sizes(size, axes), in, out / groups, initialiser);
    return convolve(weight, bias_of(p, out, with_bias));
  });
}

template <class Convolve>
Var transposed(const Parameters& p, const Argument& x, std::int64_t out, const PerAxis& size, std::size_t axes,
               std::int64_t groups, bool with_bias, const Initialiser& initialiser, const Convolve& convolve) {
  return as_layer(p, x.caller(), [&] {
    check_channels(x, axes, out, groups);
    const std::int64_t in = x.size(1);
    const Var weight = kernel(p, in, out / groups, kernel_sizes(size, axes), in / groups, out / groups, initialiser);
    return convolve(weight, bias_of(p, out, with_bias));
  });
}
}  // namespace

Var conv1d(const Parameters& p, const Argument& x, std::int64_t out, std::int64_t size, const PerAxis& stride,
           const ConvPadding& padding, const PerAxis& dilation, std::int64_t groups, bool with_bias,
           const Initialiser& initialiser) {
  return convolution(p, x, out, size, 1, groups, with_bias, initialiser, [&](const Var& weight, const Var& bias) {
    return xtape::conv1d(x, weight, bias, stride, padding, dilation, groups);
  });
}
Var conv2d(const Parameters& p, const Argument& x, std::int64_t out, const PerAxis& size, const PerAxis& stride,
           const ConvPadding& padding, const PerAxis& dilation, std::int64_t groups, bool with_bias,
           const Initialiser& initialiser) {
  return convolution(p, x, out, size, 2, groups, with_bias, initialiser, [&](const Var& weight, const Var& bias) {
    return xtape::conv2d(x, weight, bias, stride, padding, dilation, groups);
  });
}
Var conv_transpose1d(const Parameters& p, const Argument& x, std::int64_t out, std::int64_t size, const PerAxis& stride,
                     const PerAxis& padding, const PerAxis& output_padding, std::int64_t groups, bool with_bias,
                     const PerAxis& dilation, const Initialiser& initialiser) {
  return transposed(p, x, out, size, 1, groups, with_bias, initialiser, [&](const Var& weight, const Var& bias) {
    return xtape::conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation);
  });
}
Var conv_transpose2d(const Parameters& p, const Argument& x, std::int64_t out, const PerAxis& size,
                     const PerAxis& stride, const PerAxis& padding, const PerAxis& output_padding, std::int64_t groups,
                     bool with_bias, const PerAxis& dilation, const Initialiser& initialiser) {
  return transposed(p, x, out, size, 2, groups, with_bias, initialiser, [&](const Var& weight, const Var& bias) {
    return xtape::conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation);
  });
}

Var layer_norm(const Parameters& p, const Argument& x, double epsilon, bool with_bias) {
  return as_layer(p, x.caller(), [&] {
    const Var weight = p("weight", {x.size(-1)}, init::ones());
    return with_bias ? xtape::layer_norm(x, weight, bias_of(p, x.size(-1), true), epsilon)
                     : xtape::layer_norm(x, weight, epsilon);
  });
}

Var rms_norm(const Parameters& p, const Argument& x, double epsilon) {
  return as_layer(p, x.caller(), [&] { return xtape::rms_norm(x, p("weight", {x.size(-1)}, init::ones()), epsilon); });
}

Var group_norm(const Parameters& p, const Argument& x, std::int64_t groups, double epsilon) {
  return as_layer(p, x.caller(), [&] {
    const std::int64_t channels = x.size(1);
    return xtape::group_norm(x, groups, p("weight", {channels}, init::ones()), bias_of(p, channels, true), epsilon);
  });
}

Var batch_norm(const Parameters& p, const Argument& x, double epsilon, double momentum) {
  return as_layer(p, x.caller(), [&] {
    const Shape channels{x.size(1)};
    const Var weight = p("weight", channels, init::ones()), bias = bias_of(p, channels[0], true);
    const Var mean = p.statistic("running_mean", channels, init::zeros());
    const Var variance = p.statistic("running_var", channels, init::ones());
    if (p.tape().mode() != Mode::train) return xtape::batch_norm(x, mean, variance, weight, bias, epsilon);
    const BatchNorm of_batch = batch_norm_training(x, weight, bias, epsilon);
    p.record_update("running_mean", momentum * of_batch.mean + (1 - momentum) * mean);
    p.record_update("running_var", momentum * of_batch.variance + (1 - momentum) * variance);
    return of_batch.y;
  });
}

}  // namespace xtape::nn
