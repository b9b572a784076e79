// concat, stack, split and unstack. They join arrays along an axis and split arrays.
#include "kernels/table/kernels.hpp"
#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"

namespace xtape {

namespace {
std::size_t stacking_axis(const OpCall& call) {
  return normal_axis(call.integer("axis"), call.shape(0).size() + 1);
}

/// Returns the layouts of the inputs of a concat within its output.
std::vector<Layout> concat_parts(const OpCall& call, const Layout& out) {
  const std::size_t axis = normal_axis(call.integer("axis"), out.shape.size());
  std::vector<Layout> parts;
  std::int64_t start = 0;
  for (const ValueType& input : call.inputs) {
    parts.push_back({input.shape, out.strides, out.offset + start * out.strides[axis]});
    start += input.shape[axis];
  }
  return parts;
}

/// Returns the layouts of the inputs of a stack within its output.
std::vector<Layout> stack_parts(const OpCall& call, const Layout& out) {
  const std::size_t axis = stacking_axis(call);
  std::vector<Layout> parts;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    Strides strides = out.strides;
    strides.erase(axis);
    parts.push_back({call.shape(i), strides, out.offset + static_cast<std::int64_t>(i) * out.strides[axis]});
  }
  return parts;
}

/// Returns a kernel that copies every input to its layout within the output.
Kernel copies_to(const KernelCall& call, const std::vector<Layout>& parts) {
  std::vector<std::function<void(const void*, void*)>> copies;
  for (std::size_t i = 0; i < parts.size(); ++i)
    copies.push_back(kernels().make_copy(call.dtype(i), call.in[i], parts[i], call.threads));
  return {[copies](const KernelArguments& arguments) {
    for (std::size_t i = 0; i < copies.size(); ++i) copies[i](arguments.in[i], arguments.out[0]);
  }};
}

const Op& concat_op() {
  static const Op entry{
      .name = "concat",
      .doc = "Joins arrays along an existing axis. Their sizes along all other axes must be equal.",
      .inputs = {{"xs", Accept::value, Arity::many}},
      .attributes = {{"axis", AttributeType::integer, "The axis along which the arrays are joined.", std::int64_t{0}}},
      .shape =
          +[](const OpCall& call) {
            if (call.inputs.empty()) throw ShapeError("needs at least one array");
            Shape shape = call.shape(0);
            const std::size_t axis = normal_axis(call.integer("axis"), shape.size());
            for (std::size_t k = 1; k < call.inputs.size(); ++k) {
              const Shape& next = call.shape(k);
              bool fits = next.size() == shape.size();
              for (std::size_t i = 0; fits && i < next.size(); ++i) fits = i == axis || next[i] == shape[i];
              if (!fits)
                throw ShapeError("arrays of shapes " + to_string(call.shape(0)) + " and " + to_string(next) +
                                 " must have equal sizes except along axis " + std::to_string(axis));
              if (!checked_add(shape[axis], next[axis]))
                throw ShapeError("arrays of " + std::to_string(shape[axis]) + " and " + std::to_string(next[axis]) +
                                 " along axis " + std::to_string(axis) + " are together longer than 2^63 - 1");
            }
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const auto axis = call.integer("axis");
            std::vector<std::int64_t> sizes;
            for (const Var& input : call.inputs) sizes.push_back(input.size(axis));
            return split(call.cotangent(), sizes, axis);
          },
      .batch = batch_along(),
      .lowering = {.kernel = +[](const KernelCall& call) { return copies_to(call, concat_parts(call, call.out[0])); },
                   .layouts = {.any_in = true, .any_out = true, .parts = concat_parts}}};
  return entry;
}

const Op& stack_op() {
  static const Op entry{
      .name = "stack",
      .doc = "Joins arrays of one shape along a new axis, which is axis `axis` of the result.",
      .inputs = {{"xs", Accept::value, Arity::many}},
      .attributes = {{"axis", AttributeType::integer, "The index of the new axis in the result.", std::int64_t{0}}},
      .shape =
          +[](const OpCall& call) {
            if (call.inputs.empty()) throw ShapeError("needs at least one array");
            for (std::size_t k = 1; k < call.inputs.size(); ++k)
              if (call.shape(k) != call.shape(0))
                throw ShapeError("arrays must have one shape, got " + to_string(call.shape(0)) + " and " +
                                 to_string(call.shape(k)));
            Shape shape = call.shape(0);
            shape.insert(stacking_axis(call), std::ssize(call.inputs));
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient = +[](const GradientCall& call) { return unstack(call.cotangent(), call.integer("axis")); },
      .batch = batch_along("axis", true),
      .lowering = {.kernel = +[](const KernelCall& call) { return copies_to(call, stack_parts(call, call.out[0])); },
                   .layouts = {.any_in = true, .any_out = true, .parts = stack_parts}}};
  return entry;
}

/// The maximum number of parts of split and unstack. The number is limited, because each part is an output of the node.
constexpr std::int64_t most_parts = 1 << 20;

void check_parts(const char* op, std::int64_t parts, std::size_t axis, const Shape& shape) {
  if (parts > most_parts)
    throw ShapeError(std::string(op) + ": axis " + std::to_string(axis) + " of " + to_string(shape) +
                     " would be split into " + std::to_string(parts) + " arrays, and at most " +
                     std::to_string(most_parts) + " are allowed: take slices, or scan along it");
}

const Op& split_op() {
  static const Op entry{
      .name = "split",
      .doc =
          R"(Splits x along `axis` into parts of the given sizes, which must add up to the size of this axis. The parts
           are views: nothing is copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"sizes", AttributeType::integers, "The sizes of the parts along the axis.", std::nullopt},
                     {"axis", AttributeType::integer, "The axis that is split.", std::int64_t{0}}},
      .shape =
          +[](const OpCall& call) {
            const Shape& from = call.shape(0);
            const std::size_t axis = normal_axis(call.integer("axis"), from.size());
            std::vector<ValueType> types;
            std::int64_t total = 0;
            bool fits = true;
            for (std::int64_t size : call.integers("sizes")) {
              Shape shape = from;
              shape[axis] = size;
              types.push_back({call.dtype(0), shape});
              fits = fits && size >= 0 && checked_add(total, size);
            }
            if (!fits || types.empty() || total != from[axis])
              throw ShapeError("sizes " + to_string(Attribute(call.integers("sizes"))) + " must add up to " +
                               std::to_string(from[axis]) + ", the size of axis " + std::to_string(axis) + " of " +
                               to_string(from));
            return types;
          },
      .gradient =
          +[](const GradientCall& call) {
            Vars cotangents;
            for (std::size_t i = 0; i < call.outputs.size(); ++i) cotangents.push_back(call.cotangent(i));
            return Vars{concat(cotangents, call.integer("axis"))};
          },
      .expand =
          +[](const ExpandCall& call) {
            const std::size_t axis = normal_axis(call.integer("axis"), call.inputs[0].rank());
            Vars parts;
            std::int64_t start = 0;
            for (std::int64_t size : call.integers("sizes")) {
              parts.push_back(part_along(call.inputs[0], axis, start, start + size));
              start += size;
            }
            return parts;
          }};
  return entry;
}

const Op& unstack_op() {
  static const Op entry{
      .name = "unstack",
      .doc = "The slices of x along `axis`, without this axis. Each slice is an output. Views: nothing is copied.",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axis", AttributeType::integer, "The axis of the slices.", std::int64_t{0}}},
      .shape =
          +[](const OpCall& call) {
            Shape shape = call.shape(0);
            const std::size_t axis = normal_axis(call.integer("axis"), shape.size());
            const std::int64_t count = shape[axis];
            if (count == 0)
              throw ShapeError("axis " + std::to_string(axis) + " of " + to_string(shape) + " has no slices");
            check_parts("unstack", count, axis, shape);
            shape.erase(axis);
            return std::vector<ValueType>(static_cast<std::size_t>(count), ValueType{call.dtype(0), shape});
          },
      .gradient =
          +[](const GradientCall& call) {
            Vars cotangents;
            for (std::size_t i = 0; i < call.outputs.size(); ++i) cotangents.push_back(call.cotangent(i));
            const auto rank = static_cast<std::int64_t>(call.inputs[0].rank());
            const auto axis = call.integer("axis");
            return Vars{stack(cotangents, axis < 0 ? axis + rank : axis)};
          },
      .expand =
          +[](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            const std::size_t axis = normal_axis(call.integer("axis"), x.rank());
            const std::int64_t count = x.shape()[axis];
            Vars parts;
            for (std::int64_t i = 0; i < count; ++i)
              parts.push_back(squeeze(part_along(x, axis, i, i + 1), {static_cast<std::int64_t>(axis)}));
            return parts;
          }};
  return entry;
}
}  // namespace

Var concat(const Vars& xs, std::int64_t axis, Caller caller) {
  return apply(concat_op(), {xs.begin(), xs.end()}, {{"axis", axis}}, caller)[0];
}
Var stack(const Vars& xs, std::int64_t axis, Caller caller) {
  return apply(stack_op(), {xs.begin(), xs.end()}, {{"axis", axis}}, caller)[0];
}
Vars split(const Argument& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  return apply(split_op(), {x}, {{"sizes", sizes}, {"axis", axis}});
}
Vars split(const Argument& x, std::int64_t parts, std::int64_t axis) {
  return at_place(x.caller(), [&] {
    const std::int64_t size = x.size(axis);
    if (parts < 1 || size % parts != 0)
      throw ShapeError("split: axis " + std::to_string(axis) + " of " + to_string(x.shape()) +
                       " does not divide into " + std::to_string(parts) + " equal parts");
    check_parts("split", parts, normal_axis(axis, x.rank()), x.shape());
    return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(parts), size / parts), axis);
  });
}
Vars unstack(const Argument& x, std::int64_t axis) {
  return apply(unstack_op(), {x}, {{"axis", axis}});
}

void list_concat(OpTable& table) {
  for (const Op* op : {&concat_op(), &stack_op(), &split_op(), &unstack_op()}) table.add(*op);
}

}  // namespace xtape
