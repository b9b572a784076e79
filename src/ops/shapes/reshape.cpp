// reshape, expand_dims and squeeze. They change the shape, and keep the elements and the order of the elements.

#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// Returns `sizes` with its -1, if any, replaced by the size that follows from the element count of `from`. Throws
/// ShapeError if the sizes do not fit.
Shape resolved(const std::vector<std::int64_t>& sizes, const Shape& from) {
  const auto refuse = [&](const std::string& why) {
    throw ShapeError("cannot reshape " + to_string(from) + ", " + std::to_string(count_of(from)) + " elements, to " +
                     to_string(Attribute(sizes)) + ": " + why);
  };
  Shape shape(sizes.begin(), sizes.end());
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& size : shape) {
    if (size < -1) refuse("sizes must be at least 0, or -1 once");
    if (size == -1 && open != nullptr) refuse("only one size may be -1");
    if (size == -1)
      open = &size;
    else if (!checked_multiply(known, size))
      refuse("its sizes multiply to more than 2^63 - 1");
  }
  const std::int64_t count = count_of(from);
  if (open != nullptr) {
    if (known == 0 || count % known != 0)
      refuse("the other sizes multiply to " + std::to_string(known) + ", which does not divide the number of elements");
    *open = count / known;
  } else if (known != count) {
    refuse("that has " + std::to_string(known) + " elements");
  }
  return shape;
}

/// Returns the layout of the same elements with shape `shape`, or nothing if strides cannot express it. Axes of both
/// shapes are grouped so that the groups have equal products; within each group, the axes of `layout` must be mergeable
/// into one.
std::optional<Layout> reshaped(const Layout& layout, const Shape& shape) {
  if (count_of(shape) == 0) return Layout::dense(shape);
  Layout from{{}, {}, layout.offset};  // the layout without axes of size 1
  for (std::size_t i = 0; i < layout.shape.size(); ++i)
    if (layout.shape[i] != 1) {
      from.shape.push_back(layout.shape[i]);
      from.strides.push_back(layout.strides[i]);
    }
  Layout result{shape, Strides::filled(shape.size(), 1), layout.offset};
  std::size_t in = 0;
  std::size_t out = 0;
  while (in < from.shape.size()) {
    std::size_t in_end = in + 1;
    std::size_t out_end = out + 1;
    std::int64_t in_count = from.shape[in];
    std::int64_t out_count = shape[out];
    while (in_count != out_count) {
      if (in_count < out_count)
        in_count *= from.shape[in_end++];
      else
        out_count *= shape[out_end++];
    }
    for (std::size_t i = in; i + 1 < in_end; ++i)
      if (from.strides[i] != from.strides[i + 1] * from.shape[i + 1]) return std::nullopt;
    std::int64_t stride = from.strides[in_end - 1];
    for (std::size_t i = out_end; i-- > out; stride *= shape[i]) result.strides[i] = stride;
    in = in_end;
    out = out_end;
  }
  return result;
}

Vars reshape_back(const GradientCall& call) {
  return {reshape(call.cotangent(), call.inputs[0].shape())};
}

/// Returns the index of the new axis in the output.
std::size_t new_axis(const OpCall& call) {
  const std::size_t rank = call.shape(0).size();
  try {
    return normal_axis(call.integer("axis"), rank + 1);
  } catch (const ShapeError&) {
    throw ShapeError("axis " + std::to_string(call.integer("axis")) + " is out of range for a result of " +
                     std::to_string(rank + 1) + (rank == 0 ? " axis" : " axes"));
  }
}

/// Returns for each axis of the input whether it is dropped. Throws ShapeError if a dropped axis does not have size 1.
std::vector<bool> dropped(const OpCall& call) {
  const Shape& from = call.shape(0);
  const auto& axes = call.integers("axis");
  std::vector<bool> drop(from.size(), false);
  if (axes.empty())
    for (std::size_t i = 0; i < from.size(); ++i) drop[i] = from[i] == 1;
  for (std::int64_t axis : axes) {
    const std::size_t i = normal_axis(axis, from.size());
    if (from[i] != 1)
      throw ShapeError("axis " + std::to_string(axis) + " of " + to_string(from) + " has size " +
                       std::to_string(from[i]) + ": only axes of size 1 can be dropped");
    drop[i] = true;
  }
  return drop;
}

Vars batch_reshaped(const BatchCall& call) {
  Shape shape = call.node.outputs[0].shape;
  shape.insert(0, call.size);
  return {reshape(call.inputs[0], shape)};
}

const Op& reshape_op() {
  static const Op entry{
      .name = "reshape",
      .doc = R"(The elements of x, in row-major order, in another shape with equally many elements. One size may be -1
           and is then computed from the others. A view if strides can express it.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"shape", AttributeType::integers, "The new sizes; one may be -1.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            return std::vector<ValueType>{{call.dtype(0), resolved(call.integers("shape"), call.shape(0))}};
          },
      .gradient = reshape_back,
      .batch = batch_reshaped,
      .lowering = {.view = {.output = +[](const OpCall& call,
                                          const Layout& layout) { return reshaped(layout, call.outputs[0].shape); },
                            .input = +[](const OpCall& call,
                                         const Layout& layout) { return reshaped(layout, call.inputs[0].shape); }}}};
  return entry;
}

const Op& expand_dims_op() {
  static const Op entry{
      .name = "expand_dims",
      .doc = R"(x with a new axis of size 1, which is axis `axis` of the result. A view: nothing is copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axis", AttributeType::integer,
                      "The index of the new axis in the result; negative values count from the back.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            Shape shape = call.shape(0);
            shape.insert(new_axis(call), 1);
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient = reshape_back,
      .batch = batch_reshaped,
      .lowering = {.view = {.output =
                                +[](const OpCall& call, Layout layout) {
                                  layout.shape.insert(new_axis(call), 1);
                                  layout.strides.insert(new_axis(call), 0);
                                  return std::optional<Layout>(layout);
                                },
                            .input = +[](const OpCall& call,
                                         const Layout& layout) { return reshaped(layout, call.inputs[0].shape); }}}};
  return entry;
}

const Op& squeeze_op() {
  static const Op entry{
      .name = "squeeze",
      .doc = "x without axes of size 1. A view: nothing is copied.",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axis", AttributeType::integers,
                      "The axes to drop, each of size 1. An empty list drops all axes of size 1.",
                      std::vector<std::int64_t>{}}},
      .shape =
          +[](const OpCall& call) {
            const std::vector<bool> drop = dropped(call);
            Shape shape;
            for (std::size_t i = 0; i < drop.size(); ++i)
              if (!drop[i]) shape.push_back(call.shape(0)[i]);
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient = reshape_back,
      .batch = batch_reshaped,
      .lowering = {.view = {.output =
                                +[](const OpCall& call, const Layout& layout) {
                                  const std::vector<bool> drop = dropped(call);
                                  Layout result{{}, {}, layout.offset};
                                  for (std::size_t i = 0; i < drop.size(); ++i)
                                    if (!drop[i]) {
                                      result.shape.push_back(layout.shape[i]);
                                      result.strides.push_back(layout.strides[i]);
                                    }
                                  return std::optional<Layout>(result);
                                },
                            .input = +[](const OpCall& call,
                                         const Layout& layout) { return reshaped(layout, call.inputs[0].shape); }}}};
  return entry;
}
}  // namespace

Var reshape(const Argument& x, const Shape& shape) {
  return apply(reshape_op(), {x}, {{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}})[0];
}
Var expand_dims(const Argument& x, std::int64_t axis) {
  return apply(expand_dims_op(), {x}, {{"axis", axis}})[0];
}
Var squeeze(const Argument& x, const Axes& axis) {
  return apply(squeeze_op(), {x}, {{"axis", axis}})[0];
}

void list_reshape(OpTable& table) {
  table.add(reshape_op());
  table.add(expand_dims_op());
  table.add(squeeze_op());
}

}  // namespace xtape
