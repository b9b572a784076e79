#include "own_ops.hpp"

#include <cmath>

#include "xtape/ops.hpp"

namespace xtape::fuzz {

namespace {
std::vector<ValueType> as_the_first(const OpCall& call) {
  return {call.inputs[0]};
}

template <class T>
TileFunction bend_tile(double limit) {
  return [limit = static_cast<T>(limit)](const Tile& tile) {
    const T* x = static_cast<const T*>(tile.in[0]);
    T* y = static_cast<T*>(tile.out[0]);
    for (std::int64_t i = 0; i < tile.count; ++i) y[i] = limit * std::tanh(x[i] / limit);
  };
}

/// An op with a tile, a gradient rule and an expansion.
const Op& bend_op() {
  static const Op entry = [] {
    Op op;
    op.name = "own_bend";
    op.doc = "Within (-limit, limit): limit * tanh(x / limit).";
    op.inputs = {{"x", Accept::floating}};
    op.attributes = {{"limit", AttributeType::number, "The bound; positive.", 1.0}};
    op.shape = [](const OpCall& call) {
      if (!(call.number("limit") > 0)) throw Error("limit must be positive");
      return as_the_first(call);
    };
    op.lowering.tile = [](const KernelCall& call) {
      return call.dtype(0) == Dtype::float32 ? bend_tile<float>(call.number("limit"))
                                             : bend_tile<double>(call.number("limit"));
    };
    op.gradient = [](const GradientCall& call) {
      const double limit = call.number("limit");
      return Vars{call.cotangent() * (1 - square(call.outputs[0] / limit))};
    };
    op.expand = [](const ExpandCall& call) {
      const double limit = call.number("limit");
      return Vars{limit * tanh(call.inputs[0] / limit)};
    };
    op.lowering.overwrites = {0};
    return op;
  }();
  return entry;
}

template <class T>
Kernel center_kernel(const KernelCall& call) {
  const std::int64_t width = call.shape(0).back();
  const std::int64_t rows = width == 0 ? 0 : count_of(call.shape(0)) / width;
  return Kernel{[rows, width](const KernelArguments& arguments) {
    const T* x = static_cast<const T*>(arguments.in[0]);
    T* y = static_cast<T*>(arguments.out[0]);
    for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
      double total = 0;
      for (std::int64_t i = 0; i < width; ++i) total += static_cast<double>(x[i]);
      for (std::int64_t i = 0; i < width; ++i)
        y[i] = static_cast<T>(static_cast<double>(x[i]) - total / static_cast<double>(width));
    }
  }};
}

/// An op with a kernel, differentiated through its expansion.
const Op& center_op() {
  static const Op entry = [] {
    Op op;
    op.name = "own_center";
    op.doc = "x minus its mean along the last axis.";
    op.inputs = {{"x", Accept::floating}};
    op.shape = [](const OpCall& call) {
      if (call.shape(0).empty()) throw ShapeError("needs an array of at least one axis");
      return as_the_first(call);
    };
    op.lowering.kernel = [](const KernelCall& call) {
      return call.dtype(0) == Dtype::float32 ? center_kernel<float>(call) : center_kernel<double>(call);
    };
    op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] - mean(call.inputs[0], {-1}, true)}; };
    return op;
  }();
  return entry;
}

/// An op with an expansion only.
const Op& swell_op() {
  static const Op entry = [] {
    Op op;
    op.name = "own_swell";
    op.doc = "exp(tanh(x)): between 1/e and e.";
    op.inputs = {{"x", Accept::floating}};
    op.shape = as_the_first;
    op.expand = [](const ExpandCall& call) { return Vars{exp(tanh(call.inputs[0]))}; };
    return op;
  }();
  return entry;
}

template <class T>
Kernel gate_kernel(const KernelCall& call) {
  return Kernel{[count = count_of(call.shape(0))](const KernelArguments& arguments) {
    const T* a = static_cast<const T*>(arguments.in[0]);
    const T* b = static_cast<const T*>(arguments.in[1]);
    T* y = static_cast<T*>(arguments.out[0]);
    for (std::int64_t i = 0; i < count; ++i) y[i] = std::tanh(a[i]) / (1 + std::exp(-b[i]));
  }};
}

/// An op that a rule inserts.
const Op& gate_op() {
  static const Op entry = [] {
    Op op;
    op.name = "own_gate";
    op.doc = "tanh(a) * sigmoid(b), of two arrays of one shape.";
    op.inputs = {{"a", Accept::floating}, {"b", Accept::floating}};
    op.shape = [](const OpCall& call) {
      if (call.shape(0) != call.shape(1))
        throw ShapeError("needs two arrays of one shape, got " + to_string(call.shape(0)) + " and " +
                         to_string(call.shape(1)));
      return as_the_first(call);
    };
    op.lowering.kernel = [](const KernelCall& call) {
      return call.dtype(0) == Dtype::float32 ? gate_kernel<float>(call) : gate_kernel<double>(call);
    };
    op.gradient = [](const GradientCall& call) {
      const Var a = tanh(call.inputs[0]), b = sigmoid(call.inputs[1]);
      return Vars{call.cotangent() * (1 - square(a)) * b, call.cotangent() * a * b * (1 - b)};
    };
    op.expand = [](const ExpandCall& call) { return Vars{tanh(call.inputs[0]) * sigmoid(call.inputs[1])}; };
    return op;
  }();
  return entry;
}
}  // namespace

void list_own_ops(OpTable& table) {
  table.add(bend_op());
  table.add(center_op());
  table.add(swell_op());
  table.add(gate_op());
  table.add({.name = "own_gate", .op = &gate_op(), .inputs = {{Dtype::float64, {2, 3}}, {Dtype::float64, {2, 3}}}});
}

}  // namespace xtape::fuzz
