// Draws calls of convolutions, pooling and norms of channels on shapes that their shape rules accept.
#include <algorithm>

#include "drawn_ops.hpp"

namespace xtape::fuzz {

namespace {
Drawn windows(Drawer& d) {
  const Ref x = d.any([](const ValueType& type) { return !type.shape.empty() && type.shape.size() < 6; });
  const std::int64_t axis = d.axis_of(x), length = d.shape(x)[normal(d, x, axis)];
  if (length == 0) return std::nullopt;
  const std::int64_t size = d.random.between(1, std::min<std::int64_t>(3, length));
  const std::int64_t dilation = size > 1 ? d.random.between(1, (length - 1) / (size - 1)) : 1;
  return Draft{{x}, {{"axis", axis}, {"size", size}, {"stride", d.random.pick({1, 1, 2, 3})}, {"dilation", dilation}}};
}

Drawn fold(Drawer& d) {
  const Ref x = d.any([](const ValueType& type) {
    const Shape& shape = type.shape;
    return shape.size() > 1 && shape.back() > 0 && shape[0] > 0 && type.dtype != Dtype::boolean;
  });
  const std::int64_t stride = d.random.between(1, 3), dilation = d.random.between(1, 2), size = d.shape(x).back();
  const std::int64_t length = (d.shape(x)[0] - 1) * stride + (size - 1) * dilation + 1 + d.random.below(stride);
  return Draft{{x}, {{"axis", 0}, {"length", length}, {"stride", stride}, {"dilation", dilation}}};
}

/// x [batch, channels, one or two axes].
Ref image(Drawer& d, std::int64_t channels, std::int64_t n, bool with_batch) {
  Shape shape{with_batch ? d.random.between(1, 3) : 1, channels};
  for (std::int64_t i = 0; i < n; ++i) shape.push_back(d.random.between(3, 5));
  return d.fitting({d.real(), shape});
}

Drawn convolution(Drawer& d, bool transposed) {
  const std::int64_t groups = d.random.between(1, 2), n = d.random.between(1, 2), out = d.random.between(1, 2) * groups,
                     in = d.random.between(1, 2) * groups;
  Shape weight = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  for (std::int64_t i = 0; i < n; ++i) weight.push_back(d.random.between(1, 3));
  Draft draft{{image(d, in, n, true), d.fitting({d.real(), weight})},
              {{"groups", groups},
               {"stride", d.random.between(1, 2)},
               {"padding", d.random.between(0, 1)},
               {"dilation", d.random.pick({1, 1, 2})}}};
  if (d.random.one_in(3)) draft.operands.push_back(d.fitting({d.real(), {out}}));
  return draft;
}

Drawn pool(Drawer& d) {
  const std::int64_t n = d.random.between(1, 2), size = d.random.between(1, 3);
  return Draft{{d.steady(image(d, 2, n, false))},
               {{"kernel_size", List(static_cast<std::size_t>(n), size)},
                {"stride", d.random.between(1, 3)},
                {"padding", d.random.between(0, size / 2)},
                {"ceil_mode", d.random.one_in(2)}}};
}

Drawn adaptive(Drawer& d) {
  List sizes;
  for (std::int64_t n = d.random.between(1, 2); n > 0; --n) sizes.push_back(d.random.between(1, 4));
  return Draft{{d.steady(image(d, 2, static_cast<std::int64_t>(sizes.size()), false))}, {{"output_size", sizes}}};
}

Drawn interpolated(Drawer& d) {
  const std::int64_t n = d.random.between(1, 2);
  Draft draft{{image(d, 2, n, true)},
              {{"mode", std::string(n == 1 ? d.random.pick({"nearest", "nearest-exact", "linear"})
                                           : d.random.pick({"nearest", "bilinear", "bicubic"}))},
               {"align_corners", d.random.one_in(2)}}};
  if (d.random.one_in(2))
    draft.attributes.set("scale_factor", d.random.pick({0.5, 1.5, 2.0}));
  else
    draft.attributes.set("size", List(static_cast<std::size_t>(n), d.random.between(1, 6)));
  return draft;
}

Drawn grid_sample(Drawer& d) {
  const Ref x = image(d, 2, 2, true);
  const Shape points{d.shape(x)[0], d.random.between(1, 3), d.random.between(1, 3), 2};
  return Draft{{x, d.steady(d.fitting({d.real(), points}))},
               {{"mode", std::string(d.random.pick({"bilinear", "nearest"}))},
                {"padding_mode", std::string(d.random.pick({"zeros", "border", "reflection"}))},
                {"align_corners", d.random.one_in(2)}}};
}

/// Of enough numbers for a variance that is not near 0.
Drawn norm(Drawer& d, bool in_groups, bool given) {
  const Ref x = image(d, 4, 2, true);
  const ValueType each{d.real(), {4}};
  Draft draft{{x}, {{"epsilon", 0.1}}};
  if (in_groups) draft.attributes.set("groups", d.random.pick({1, 2, 4}));
  if (given) draft.operands = {x, d.fitting(each), d.positive(d.fitting(each))};
  for (std::int64_t more = d.random.below(3); more > 0; --more) draft.operands.push_back(d.fitting(each));
  return draft;
}

Drawn batch_norm_grad(Drawer& d) {
  const Ref x = image(d, 4, 2, true);
  const ValueType each{d.real(), {4}};
  Draft draft{{d.fitting(x), x, d.fitting(each), d.fitting(each)}, {{"bias", d.random.one_in(2)}}};
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting(each));
  return draft;
}
}  // namespace

Hints hints_of_channels() {
  return {
      {"windows", {windows, true}},
      {"fold", {fold, false, true}},
      {"conv", {[](Drawer& d) { return convolution(d, false); }, false, true}},
      {"conv_transpose", {[](Drawer& d) { return convolution(d, true); }, false, true}},
      {"max_pool", {pool, true, false, true}},
      {"avg_pool", {pool}},
      {"adaptive_max_pool", {adaptive, true, false, true}},
      {"adaptive_avg_pool", {adaptive}},
      {"interpolate", {interpolated}},
      {"grid_sample", {grid_sample, false, false, true}},
      {"group_norm", {[](Drawer& d) { return norm(d, true, false); }}},
      {"instance_norm", {[](Drawer& d) { return norm(d, false, false); }}},
      {"batch_norm", {[](Drawer& d) { return norm(d, false, true); }, false, true}},
      {"batch_norm_training", {[](Drawer& d) { return norm(d, false, false); }}},
      {"batch_norm_grad", {batch_norm_grad, false, true}},
  };
}

}  // namespace xtape::fuzz
