// windows, a view of sliding windows, and its adjoint fold, the sum of overlapping windows.
#include "ops/convolution/windows.hpp"

#include <algorithm>

#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/convolution.hpp"

namespace xtape {

namespace {
/// The common attributes of both ops.
struct Slide {
  std::size_t axis;  // the axis of the array along which windows slide
  std::int64_t size, stride, dilation;

  Slide(const Attributes& attributes, std::int64_t size, std::size_t rank)
      : axis(normal_axis(attributes.get<std::int64_t>("axis"), rank)),
        size(size),
        stride(attributes.get<std::int64_t>("stride")),
        dilation(attributes.get<std::int64_t>("dilation")) {}
  std::int64_t place() const { return static_cast<std::int64_t>(axis); }
};

std::vector<AttributeSpec> slide_attributes(const char* axis, const AttributeSpec& second) {
  return {
      {"axis", AttributeType::integer, axis, std::nullopt},
      second,
      {"stride", AttributeType::integer, "The distance between the first elements of neighbouring windows.",
       std::int64_t{1}},
      {"dilation", AttributeType::integer, "The distance between neighbouring elements of a window.", std::int64_t{1}}};
}

Slide slide_of_windows(const OpCall& call) {
  return {call.attributes, call.integer("size"), call.shape(0).size()};
}

const Op& windows_op() {
  static const Op entry{
      .name = "windows",
      .doc =
          R"(Windows of `size` elements that slide along an axis, as torch.Tensor.unfold: y[..., i, ..., k] = x[..., i *
           stride + k * dilation, ...]. Here i is the index along the axis, and k the index along a new last axis. A
           view: nothing is copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes =
          slide_attributes("The axis of x along which windows slide.",
                           {"size", AttributeType::integer, "The number of elements of a window.", std::nullopt}),
      .shape =
          +[](const OpCall& call) {
            const Slide slide = slide_of_windows(call);
            Shape shape = call.shape(0);
            const std::int64_t count = count_of_windows(shape[slide.axis], slide.size, slide.stride, slide.dilation);
            if (count == 0)
              throw ShapeError("a window over " + std::to_string(span_of_window(slide.size, slide.dilation)) +
                               " elements does not fit axis " + std::to_string(slide.axis) + " of " +
                               to_string(call.shape(0)));
            shape[slide.axis] = count;
            shape.push_back(slide.size);
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const Shape& shape = call.inputs[0].shape();
            const Slide slide(call.attributes, call.integer("size"), shape.size());
            return Vars{fold(call.cotangent(), slide.place(), shape[slide.axis], slide.stride, slide.dilation)};
          },
      .batch = batch_along(),
      .lowering = {.view = {.output = +[](const OpCall& call, const Layout& layout) {
                     const Slide slide = slide_of_windows(call);
                     Layout result{call.outputs[0].shape, layout.strides, layout.offset};
                     // With fewer than two elements, the step may be too large for 64-bit arithmetic and is not needed.
                     result.strides.push_back(slide.size > 1 ? layout.strides[slide.axis] * slide.dilation : 0);
                     if (result.shape[slide.axis] > 1) result.strides[slide.axis] *= slide.stride;
                     return std::optional<Layout>(result);
                   }}}};
  return entry;
}

/// Returns the sum of the windows, computed with the indices of their elements. First moves the axis within the windows
/// next to the axis of the windows.
Var folded(const Var& x, const Slide& slide, std::int64_t length) {
  const std::size_t last = x.rank() - 1;
  const std::int64_t count = x.shape()[slide.axis];
  Axes order;
  for (std::size_t axis = 0; axis < last; ++axis) {
    order.push_back(static_cast<std::int64_t>(axis));
    if (axis == slide.axis) order.push_back(static_cast<std::int64_t>(last));
  }
  const Var beside = transpose(x, order);
  Shape flat = x.shape();
  flat.erase(last);
  Shape whole = flat;
  whole[slide.axis] = length;
  flat[slide.axis] = count * slide.size;
  if (slide.dilation == 1 && slide.stride == slide.size)  // adjacent windows without gaps
    return extended(reshape(beside, flat), slide.axis, {0}, {length - count * slide.size});
  const Var indices = iota(x.tape(), {count, 1}) * slide.stride + iota(x.tape(), {1, slide.size}, 1) * slide.dilation;
  return index_add(zeros(x.tape(), whole, x.dtype()), slide.place(), reshape(indices, {count * slide.size}),
                   reshape(beside, flat));
}

Slide slide_of_fold(const OpCall& call) {
  if (call.shape(0).size() < 2)
    throw ShapeError("needs an axis of windows and one within them, got an array of shape " + to_string(call.shape(0)));
  return {call.attributes, call.shape(0).back(), call.shape(0).size() - 1};
}

const Op& fold_op() {
  static const Op entry{
      .name = "fold",
      .doc = R"(The sum of overlapping windows, the adjoint of `windows`: y[..., j, ...] is the sum of x[..., i, ..., k]
           over all i and k with i * stride + k * dilation = j. Here i and j are indices along the axis, and k is the
           index along the last axis of x.)",
      .inputs = {{"x", Accept::value}},
      .attributes =
          slide_attributes("The axis of the result along which the windows lie.",
                           {"length", AttributeType::integer, "The size of the result along the axis.", std::nullopt}),
      .shape =
          +[](const OpCall& call) {
            const Slide slide = slide_of_fold(call);
            const std::int64_t length = call.integer("length");
            Shape shape = call.shape(0);
            if (call.dtype(0) == Dtype::boolean) throw DtypeError("cannot add bool arrays: cast them to numbers");
            const std::int64_t count = count_of_windows(length, slide.size, slide.stride, slide.dilation);
            if (count == 0 || count != shape[slide.axis])
              throw ShapeError("axis " + std::to_string(slide.axis) + " of " + to_string(shape) + " must have the " +
                               std::to_string(count) + " windows of " + std::to_string(slide.size) +
                               " elements that lie along " + std::to_string(length));
            shape.erase(shape.size() - 1);
            shape[slide.axis] = length;
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const Var &x = call.inputs[0], dy = call.cotangent();
            const Slide slide(call.attributes, x.size(-1), dy.rank());
            return Vars{windows(dy, slide.place(), slide.size, slide.stride, slide.dilation)};
          },
      .batch = batch_along("axis", true),
      .expand =
          +[](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            return Vars{folded(x, {call.attributes, x.size(-1), x.rank() - 1}, call.integer("length"))};
          }};
  return entry;
}
}  // namespace

std::int64_t span_of_window(std::int64_t size, std::int64_t dilation) {
  if (size < 1 || dilation < 1)
    throw ShapeError("size and dilation of a window must be at least 1, got " + std::to_string(size) + " and " +
                     std::to_string(dilation));
  std::int64_t span = size - 1;
  if (!checked_multiply(span, dilation) || !checked_add(span, 1))
    throw ShapeError("a window of " + std::to_string(size) + " elements with dilation " + std::to_string(dilation) +
                     " is longer than 2^63 - 1");
  return span;
}

std::int64_t count_of_windows(std::int64_t length, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
  if (stride < 1) throw ShapeError("the stride of windows must be at least 1, got " + std::to_string(stride));
  const std::int64_t span = span_of_window(size, dilation);
  return length < span ? 0 : (length - span) / stride + 1;
}

std::vector<std::int64_t> per_axis(const Attributes& attributes, const std::string& name, std::size_t n) {
  std::vector<std::int64_t> list = attributes.get<std::vector<std::int64_t>>(name);
  if (list.size() == 1) list.resize(n, list[0]);
  if (list.size() != n)
    throw ShapeError(name + " has " + std::to_string(list.size()) + " numbers, but must have one, or one for each of " +
                     std::to_string(n) + " axes");
  return list;
}

Var windows_along(Var x, std::int64_t first, const std::vector<std::int64_t>& size,
                  const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& dilation) {
  for (std::size_t i = 0; i < size.size(); ++i)
    x = windows(x, first + static_cast<std::int64_t>(i), size[i], stride[i], dilation[i]);
  return x;
}

Var extended(const Var& x, std::size_t first, const std::vector<std::int64_t>& before,
             const std::vector<std::int64_t>& after, double value) {
  std::vector<std::int64_t> start(x.rank(), 0), stop(x.shape().begin(), x.shape().end()), front = start, back = start;
  bool cut = false, grown = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::int64_t size = x.shape()[first + i];
    std::int64_t &begin = start[first + i], &end = stop[first + i];
    begin = std::clamp<std::int64_t>(-before[i], 0, size);
    end = std::clamp(size + after[i], begin, size);
    const std::int64_t added = size + before[i] + after[i] - (end - begin);
    front[first + i] = std::clamp<std::int64_t>(before[i], 0, added);
    back[first + i] = added - front[first + i];
    cut = cut || end - begin < size;
    grown = grown || added > 0;
  }
  const Var kept = cut ? slice(x, start, stop) : x;
  return grown ? pad(kept, front, back, value) : kept;
}

Var windows(const Argument& x, std::int64_t axis, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
  return apply(windows_op(), {x}, {{"axis", axis}, {"size", size}, {"stride", stride}, {"dilation", dilation}})[0];
}
Var fold(const Argument& x, std::int64_t axis, std::int64_t length, std::int64_t stride, std::int64_t dilation) {
  return apply(fold_op(), {x}, {{"axis", axis}, {"length", length}, {"stride", stride}, {"dilation", dilation}})[0];
}

void list_windows(OpTable& table) {
  table.add(windows_op());
  table.add(fold_op());
}

}  // namespace xtape
