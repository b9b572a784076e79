// rms_norm and its gradient.
#include "batching.hpp"
#include "floating.hpp"
#include "kernels.hpp"
#include "op_helpers.hpp"
#include "row_kernel.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
std::vector<ValueType> rms_norm_shape(const Call& call) {
  const Shape rows = without_last(call.shape(0));
  if (call.inputs.size() > 1)
    require_shape(call, 1, {call.shape(0).back()}, "one number for each index of the last axis of x");
  return {call.inputs[0], {call.dtype(0), rows}};
}

Kernel rms_norm_kernel(const KernelCall& call) {
  const std::int64_t length = call.shape(0).back();
  const std::int64_t rows = count_of(call.outputs[1].shape);
  const double epsilon = call.number("epsilon");
  const bool weighted = call.inputs.size() > 1;
  return with_floating(call.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return row_kernel(
        rows, length, call.threads, [=](const KernelArguments& arguments, std::int64_t first, std::int64_t last) {
          kernels().of<T>().rms_norm(in<T>(arguments, 0), weighted ? in<T>(arguments, 1) : nullptr, epsilon,
                                     out<T>(arguments, 0), out<T>(arguments, 1), first, last, length);
        });
  });
}

std::vector<ValueType> rms_norm_grad_shape(const Call& call) {
  require_shape(call, 0, call.shape(1), "that of x");
  require_shape(call, 2, without_last(call.shape(1)), "that of x without its last axis");
  std::vector<ValueType> outputs = {call.inputs[1]};
  if (call.inputs.size() > 3) {
    require_shape(call, 3, {call.shape(1).back()}, "one number for each index of the last axis of x");
    outputs.push_back(call.inputs[3]);
  }
  return outputs;
}

Kernel rms_norm_grad_kernel(const KernelCall& call) {
  const std::int64_t length = call.shape(1).back();
  const std::int64_t rows = count_of(call.shape(2));
  const int threads = call.threads;
  const bool weighted = call.inputs.size() > 3;
  return with_floating(call.dtype(1), [&](auto scalar) {
    using T = decltype(scalar);
    const std::size_t scratch = weighted ? kernels().norm_grad_scratch(rows, length, sizeof(T)) : 0;
    return Kernel{[=](const KernelArguments& arguments) {
                    kernels().of<T>().norm_grad(in<T>(arguments, 0), in<T>(arguments, 1), nullptr, in<T>(arguments, 2),
                                                weighted ? in<T>(arguments, 3) : nullptr, out<T>(arguments, 0),
                                                weighted ? out<T>(arguments, 1) : nullptr, nullptr, arguments.scratch,
                                                rows, length, threads);
                  },
                  scratch};
  });
}

Vars expand_rms_norm_grad(const ExpandCall& call) {
  const Var& dy = call.inputs[0];
  const Var rstd = expand_dims(call.inputs[2], -1);
  const Var normal = call.inputs[1] * rstd;
  const bool weighted = call.inputs.size() > 3;
  const Var g = weighted ? dy * call.inputs[3] : dy;
  Vars gradients = {rstd * (g - normal * mean(g * normal, {-1}, true))};
  if (weighted) gradients.push_back(sum_to(dy * normal, {dy.size(-1)}));
  return gradients;
}

const Op& rms_norm_grad_op() {
  static const Op entry{
      .name = "rms_norm_grad",
      .doc = R"(The gradient of rms_norm. With xhat = x * rstd and g = dy * weight: dx = rstd * (g - xhat * mean(g *
           xhat)), the mean along the last axis; dweight = sum(dy * xhat) over all other axes, given if
           weight is.)",
      .inputs = {{"dy", Accept::floating},
                 {"x", Accept::floating},
                 {"rstd", Accept::floating},
                 {"weight", Accept::floating, Arity::optional}},
      .outputs = {"dx", "dweight"},
      .shape = rms_norm_grad_shape,
      .expand = expand_rms_norm_grad,
      .lowering = {.kernel = rms_norm_grad_kernel, .overwrites = {0, 1}}};
  return entry;
}

Vars rms_norm_gradient(const GradientCall& call) {
  if (!call.cotangents[1].empty()) return {};  // second derivatives go through the expansion
  std::vector<Operand> operands = {call.cotangent(), call.inputs[0], call.outputs[1]};
  if (call.inputs.size() > 1) operands.push_back(call.inputs[1]);
  return xtape::apply(rms_norm_grad_op(), operands);
}

Vars expand_rms_norm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var rstd = rsqrt(mean(square(x), {-1}, true) + call.attributes().get<double>("epsilon"));
  const Var y = x * rstd;
  return {call.inputs.size() > 1 ? y * call.inputs[1] : y, squeeze(rstd, {-1})};
}

const Op& rms_norm_op() {
  static const Op entry{
      .name = "rms_norm",
      .doc = R"(y = x / sqrt(mean(x^2) + epsilon) * weight, the mean along the last axis (Zhang and Sennrich, 2019).
           weight has one element for each index of that axis and may be left out. Keeps rstd = 1 /
           sqrt(mean(x^2) + epsilon) of every row for the gradient.)",
      .inputs = {{"x", Accept::floating}, {"weight", Accept::floating, Arity::optional}},
      .outputs = {"y", "rstd"},
      .results = 1,
      .attributes = {{"epsilon", AttributeType::number, "Added to the mean square, inside the square root.", 1e-6}},
      .shape = rms_norm_shape,
      .gradient = rms_norm_gradient,
      .batch = batch_rows_of_input,
      .expand = expand_rms_norm,
      .lowering = {.kernel = rms_norm_kernel, .overwrites = {0}}};
  return entry;
}
}  // namespace

Var rms_norm(const Argument& x, double epsilon) {
  return apply(rms_norm_op(), {x}, {{"epsilon", epsilon}})[0];
}
Var rms_norm(const Argument& x, const Var& weight, double epsilon) {
  return apply(rms_norm_op(), {x, weight}, {{"epsilon", epsilon}})[0];
}

void list_rms_norm(OpTable& table) {
  table.add(rms_norm_op());
  table.add(rms_norm_grad_op());
  const ValueType x{Dtype::float64, {2, 3}}, places{Dtype::float64, {3}};
  for (const std::vector<ValueType>& sample : {std::vector{x, places}, std::vector{x}})
    table.add({.name = "rms_norm", .op = &rms_norm_op(), .inputs = sample, .attributes = {{"epsilon", 0.371}}});
}

}  // namespace xtape
